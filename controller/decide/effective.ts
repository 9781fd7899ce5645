import type { AgentSpec } from '../../core/frames/messages.ts';
import type { EnvVar } from '../../core/resources/agent.ts';
import { formatDuration, parseDuration } from '../../core/resources/duration.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { CachedSession, Installation, Problem } from '../world.ts';
import { parseQuantity } from './quantity.ts';

/** What a session really runs with: its own settings over its class's over the built-in ones. */
export interface Effective {
  image: string;
  imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  imagePullSecrets: { name: string }[];
  agent: AgentSpec;
  /** Variables of the runner's container that the kubelet fills from Secrets; the agent sees them under their own names. */
  secrets: { variable: string; name: string; key: string }[];
  resources: { requests: Record<string, string>; limits: Record<string, string> };
  startMs: number;
  turnMs: number;
}

export const DEFAULT_START_MS = 10 * 60_000;
export const DEFAULT_TURN_MS = 30 * 60_000;
const DEFAULT_REQUESTS = { cpu: '50m', memory: '128Mi' };
const DEFAULT_LIMITS = { cpu: '1', memory: '1Gi' };

type Spec = CachedSession['spec'];

/** The effective settings, or what is wrong with them in the words of the user's own fields. */
export function effective(
  session: CachedSession,
  sessionClass: StoredSessionClass | undefined,
  installation: Installation,
): Effective | Problem {
  const { spec } = session;
  if (!sessionClass) {
    return {
      reason: 'ClassNotFound',
      message: `spec.class: there is no SessionClass "${spec.class}"; create it, or create a Session with one of \`kubectl get sessionclasses\``,
    };
  }
  const allowed = sessionClass.spec;
  const problem =
    forbiddenOverride(spec, allowed) ??
    overResources(spec, allowed) ??
    overTimeouts(spec, allowed) ??
    forbiddenSecret(spec, allowed);
  if (problem) return { ...problem, message: `${problem.message} (class "${spec.class}")` };

  const command = spec.agent?.command ?? allowed.agent?.command;
  if (!command) {
    return {
      reason: 'InvalidSpec',
      message: `spec.agent.command: is not set, and class "${spec.class}" has no default; set the program to run`,
    };
  }
  const { env, secrets } = environment(allowed.agent?.env ?? [], spec.agent?.env ?? []);
  const workingDir = spec.agent?.workingDir ?? allowed.agent?.workingDir;
  const turnMs = milliseconds(spec.timeouts?.turn ?? allowed.timeouts?.turn, DEFAULT_TURN_MS);
  return {
    image: spec.image ?? allowed.image ?? installation.runnerImage,
    ...(allowed.imagePullPolicy ? { imagePullPolicy: allowed.imagePullPolicy } : {}),
    imagePullSecrets: allowed.imagePullSecrets ?? [],
    agent: {
      driver: spec.agent?.driver ?? allowed.agent?.driver ?? 'Command',
      command,
      // The class's arguments belong to the class's command.
      args: spec.agent?.args ?? (spec.agent?.command ? [] : (allowed.agent?.args ?? [])),
      ...(workingDir ? { workingDir } : {}),
      env,
      input: spec.agent?.input ?? allowed.agent?.input ?? 'Stdin',
      result: spec.agent?.result ?? allowed.agent?.result ?? 'Envelope',
    },
    secrets,
    resources: {
      requests: amounts(DEFAULT_REQUESTS, allowed.resources?.requests, spec.resources?.requests),
      limits: amounts(DEFAULT_LIMITS, allowed.resources?.limits, spec.resources?.limits),
    },
    startMs: milliseconds(spec.timeouts?.start ?? allowed.timeouts?.start, DEFAULT_START_MS),
    turnMs,
  };
}

/** The time-out of one turn: its own, at most the class's ceiling. */
export function turnTimeout(
  own: string | undefined,
  settings: Effective,
  sessionClass: StoredSessionClass | undefined,
): number {
  const ceiling = sessionClass?.spec.maxTimeouts?.turn;
  const wanted = own ? parseDuration(own) : settings.turnMs;
  return ceiling ? Math.min(wanted, parseDuration(ceiling)) : wanted;
}

export function isProblem(value: Effective | Problem): value is Problem {
  return 'reason' in value;
}

const milliseconds = (text: string | undefined, fallback: number) => (text ? parseDuration(text) : fallback);

function forbiddenOverride(spec: Spec, allowed: SessionClassSpec): Problem | undefined {
  const set = [
    ...Object.keys(spec.agent ?? {}).map((field) => `agent.${field}`),
    ...(['image', 'resources', 'timeouts'] as const).filter((field) => spec[field] !== undefined),
  ];
  const refused = set.find((field) => !(allowed.overrides as string[]).includes(field));
  if (!refused) return undefined;
  return {
    reason: 'NotAllowed',
    message: `spec.${refused}: the class does not allow sessions to set it; leave it out, or have "${refused}" added to the class's spec.overrides`,
  };
}

function overResources(spec: Spec, allowed: SessionClassSpec): Problem | undefined {
  for (const group of ['requests', 'limits'] as const) {
    for (const [resource, ceiling] of Object.entries(allowed.maxResources?.[group] ?? {})) {
      const wanted = spec.resources?.[group]?.[resource as 'cpu'];
      if (wanted && ceiling && parseQuantity(wanted) > parseQuantity(ceiling)) {
        return {
          reason: 'NotAllowed',
          message: `spec.resources.${group}.${resource}: ${wanted} is more than the ${ceiling} that the class allows; ask for less`,
        };
      }
    }
  }
  return undefined;
}

function overTimeouts(spec: Spec, allowed: SessionClassSpec): Problem | undefined {
  for (const name of ['start', 'turn'] as const) {
    const wanted = spec.timeouts?.[name];
    const ceiling = allowed.maxTimeouts?.[name];
    if (wanted && ceiling && parseDuration(wanted) > parseDuration(ceiling)) {
      return {
        reason: 'NotAllowed',
        message: `spec.timeouts.${name}: ${wanted} is more than the ${formatDuration(parseDuration(ceiling))} that the class allows; ask for less`,
      };
    }
  }
  return undefined;
}

function forbiddenSecret(spec: Spec, allowed: SessionClassSpec): Problem | undefined {
  for (const [index, variable] of (spec.agent?.env ?? []).entries()) {
    const secret = variable.valueFrom?.secretKeyRef.name;
    if (secret && !allowed.secrets.includes(secret) && !allowed.secrets.includes('*')) {
      return {
        reason: 'NotAllowed',
        message: `spec.agent.env[${index}].valueFrom.secretKeyRef.name: the class does not allow Secret "${secret}" to be named; have it added to the class's spec.secrets`,
      };
    }
  }
  return undefined;
}

/** Later variables replace earlier ones of the same name. */
function environment(...lists: EnvVar[][]): Pick<Effective, 'secrets'> & { env: AgentSpec['env'] } {
  const byName = new Map(lists.flat().map((variable) => [variable.name, variable]));
  const env: AgentSpec['env'] = [];
  const secrets: Effective['secrets'] = [];
  for (const variable of byName.values()) {
    if (variable.valueFrom) {
      const inPod = `BERTH_SECRET_${secrets.length}`;
      secrets.push({ variable: inPod, ...variable.valueFrom.secretKeyRef });
      env.push({ name: variable.name, secret: inPod });
    } else {
      env.push({ name: variable.name, value: variable.value ?? '' });
    }
  }
  return { env, secrets };
}

/** Later amounts replace earlier ones. */
function amounts(...layers: (Record<string, string | undefined> | undefined)[]): Record<string, string> {
  return Object.fromEntries(
    layers
      .flatMap((layer) => Object.entries(layer ?? {}))
      .filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
}
