import { formatDuration, parseDuration } from './duration.ts';
import { OVERRIDABLE } from './overridable.ts';
import type { SessionSpec } from './session.ts';
import type { SessionClassSpec } from './sessionclass.ts';

/**
 * Checks the settings that a class allows its sessions. It uses no schemas, so that the command line need not load
 * them.
 */

/** Path of a field of a Session, the problem with it, and what to do. */
export interface NotAllowed {
  field: string;
  message: string;
}

type Spec = Partial<Omit<SessionSpec, 'input'>>;

/** Returns the first setting of the session that its class does not allow; undefined when there is none. */
export function notAllowed(spec: Spec, allowed: SessionClassSpec): NotAllowed | undefined {
  return override(spec, allowed) ?? timeout(spec, allowed) ?? secret(spec, allowed);
}

function override(spec: Spec, { overrides }: SessionClassSpec): NotAllowed | undefined {
  const set = [
    ...Object.keys(spec.agent ?? {}).map((field) => `agent.${field}`),
    ...OVERRIDABLE.filter((field) => !field.startsWith('agent.') && spec[field as 'image'] !== undefined),
  ];
  const refused = set.find((field) => !(overrides as string[]).includes(field));
  if (!refused) return undefined;
  return {
    field: `spec.${refused}`,
    message: `the class does not allow sessions to set it; leave it out, or have "${refused}" added to the class's spec.overrides`,
  };
}

function timeout(spec: Spec, { maxTimeouts }: SessionClassSpec): NotAllowed | undefined {
  for (const [name, wanted] of Object.entries(spec.timeouts ?? {})) {
    const ceiling = maxTimeouts?.[name as keyof typeof maxTimeouts];
    if (wanted && ceiling && parseDuration(wanted) > parseDuration(ceiling)) {
      return {
        field: `spec.timeouts.${name}`,
        message: `${wanted} is more than the ${formatDuration(parseDuration(ceiling))} that the class allows; ask for less`,
      };
    }
  }
  return undefined;
}

function secret({ agent }: Spec, { secrets }: SessionClassSpec): NotAllowed | undefined {
  const named = [
    ...(agent?.env ?? []).map(({ valueFrom }, i) => [`env[${i}].valueFrom`, valueFrom?.secretKeyRef.name] as const),
    ...(agent?.secretFiles ?? []).map(({ secretKeyRef }, i) => [`secretFiles[${i}]`, secretKeyRef.name] as const),
  ];
  const refused = named.find(([, name]) => name && !secrets.includes(name) && !secrets.includes('*'));
  if (!refused) return undefined;
  return {
    field: `spec.agent.${refused[0]}.secretKeyRef.name`,
    message: `the class does not allow Secret "${refused[1]}" to be named; have it added to the class's spec.secrets`,
  };
}
