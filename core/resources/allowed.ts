import { runnerless, tooLarge, unbounded } from './allowed-amounts.ts';
import { formatDuration, parseDuration } from './duration.ts';
import { OVERRIDABLE } from './overridable.ts';
import type { Refusal } from './refusal.ts';
import type { SessionSpec } from './session.ts';
import type { SessionClassSpec } from './sessionclass.ts';
import type { TurnSpec } from './turn.ts';

/**
 * Checks of a Session or a Turn against its class. API, CLI and controller use these and no others, so
 * that a limit is the same for all of them. They use no schemas, so that the command line need not load them.
 */

type Spec = Partial<Omit<SessionSpec, 'input'>>;

/** Returns the first setting of the session that its class refuses; undefined when there is none. */
export function sessionRefusal(spec: Spec, allowed: SessionClassSpec): Refusal | undefined {
  return (
    override(spec, allowed) ??
    timeouts(spec, allowed) ??
    secret(spec, allowed) ??
    tooLarge(spec, allowed) ??
    runnerless(spec, allowed) ??
    unbounded(spec, allowed)
  );
}

/** Returns the first setting of the turn that the class of its session refuses; undefined when there is none. */
export function turnRefusal(
  { timeout }: Pick<TurnSpec, 'timeout'>,
  { overrides, maxTimeouts }: SessionClassSpec,
): Refusal | undefined {
  if (timeout === undefined) return undefined;
  if (!overrides.includes('timeouts')) {
    const message =
      'the class does not allow turns to set it; leave it out, or have "timeouts" added to the class\'s spec.overrides';
    return { reason: 'NotAllowed', field: 'spec.timeout', message };
  }
  return tooLong('spec.timeout', timeout, maxTimeouts?.turn);
}

function override(spec: Spec, { overrides }: SessionClassSpec): Refusal | undefined {
  const set = [
    ...Object.keys(spec.agent ?? {}).map((field) => `agent.${field}`),
    ...OVERRIDABLE.filter((field) => !field.startsWith('agent.') && spec[field as 'image'] !== undefined),
  ];
  const refused = set.find((field) => !(overrides as string[]).includes(field));
  if (!refused) return undefined;
  return {
    reason: 'NotAllowed',
    field: `spec.${refused}`,
    message: `the class does not allow sessions to set it; leave it out, or have "${refused}" added to the class's spec.overrides`,
  };
}

function timeouts(spec: Spec, { maxTimeouts }: SessionClassSpec): Refusal | undefined {
  for (const [name, wanted] of Object.entries(spec.timeouts ?? {})) {
    const refused = tooLong(`spec.timeouts.${name}`, wanted, maxTimeouts?.[name as keyof typeof maxTimeouts]);
    if (refused) return refused;
  }
  return undefined;
}

function tooLong(field: string, wanted: string | undefined, ceiling: string | undefined): Refusal | undefined {
  if (!wanted || !ceiling || parseDuration(wanted) <= parseDuration(ceiling)) return undefined;
  const message = `${wanted} is more than the ${formatDuration(parseDuration(ceiling))} that the class allows; ask for less`;
  return { reason: 'NotAllowed', field, message };
}

function secret({ agent }: Spec, { secrets }: SessionClassSpec): Refusal | undefined {
  const named = [
    ...(agent?.env ?? []).map(({ valueFrom }, i) => [`env[${i}].valueFrom`, valueFrom?.secretKeyRef.name] as const),
    ...(agent?.secretFiles ?? []).map(({ secretKeyRef }, i) => [`secretFiles[${i}]`, secretKeyRef.name] as const),
  ];
  const refused = named.find(([, name]) => name && !secrets.includes(name) && !secrets.includes('*'));
  if (!refused) return undefined;
  return {
    reason: 'NotAllowed',
    field: `spec.agent.${refused[0]}.secretKeyRef.name`,
    message: `the class does not allow Secret "${refused[1]}" to be named; have it added to the class's spec.secrets`,
  };
}
