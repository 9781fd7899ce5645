import { defined } from '../../core/defined.ts';
import type { Container, EnvVar, Pod } from '../../core/kube/builtin.ts';
import {
  ANNOTATION_REDACTION,
  LABEL_RUNNER,
  LABEL_TURN_UID,
  SECRETS_DIRECTORY,
  TURN_GATE,
} from '../../core/resources/names.ts';
import type { RedactionRules } from '../../core/resources/redaction.ts';
import { expand } from '../../core/text/placeholders.ts';
import type { CachedSession } from '../observed/world.ts';
import type { Effective } from '../settings/effective.ts';

/** The turn that a runnerless pod runs. */
export interface RunnerlessTurn {
  uid: string;
  name: string;
  /** Input as JSON. */
  input: string;
}

export const START_MARKER = 'BERTH_RESULT_START_MARKER';
export const END_MARKER = 'BERTH_RESULT_END_MARKER';

/** MAX_ARG_STRLEN of Linux: one variable with its name, "=" and the NUL at its end. */
const MAX_VARIABLE_BYTES = 131_072;

/**
 * Turns the session's pod into a runnerless one for a single turn. Its scheduling gate keeps it from running before the
 * turn is written Running.
 */
export function runnerlessPod(pod: Pod, session: CachedSession, settings: Effective, turn: RunnerlessTurn): Pod {
  const [container, ...others] = pod.spec.containers as [Container, ...Container[]];
  const { command, args, workingDir } = settings.agent;
  const expanded = (text: string) => verbatim(expand(text, standardVariables(session)));
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: { ...pod.metadata.labels, [LABEL_RUNNER]: 'None', [LABEL_TURN_UID]: turn.uid },
      annotations: { ...pod.metadata.annotations, [ANNOTATION_REDACTION]: JSON.stringify(rulesOf(settings)) },
    },
    spec: {
      ...pod.spec,
      schedulingGates: [{ name: TURN_GATE }],
      containers: [
        {
          ...container,
          ...(command.length > 0 ? { command: command.map(verbatim) } : {}),
          ...(args.length > 0 ? { args: args.map(expanded) } : {}),
          ...(workingDir ? { workingDir } : {}),
          // The first writer to stdin closes it, so a program that reads all of its stdin ends.
          stdinOnce: true,
          env: environment(session, settings, turn),
          volumeMounts: (container.volumeMounts ?? []).filter(({ name }) => name !== 'berth'),
        },
        ...others,
      ],
      volumes: (pod.spec.volumes ?? []).filter(({ name }) => name !== 'berth'),
    },
  };
}

function rulesOf({ redact, heuristics }: Effective): RedactionRules {
  return { patterns: redact, ...defined({ heuristics }) };
}

/** Escapes `$` for the kubelet, which has placeholders of its own in commands, arguments and variables. */
function verbatim(text: string): string {
  return text.replaceAll('$', '$$$$');
}

/** Values of `$(NAME)`, as with a runner; there is no state. */
function standardVariables({ metadata }: CachedSession): (name: string) => string | undefined {
  return (name) => {
    if (name === 'BERTH_SECRETS_DIR') return SECRETS_DIRECTORY;
    return name === 'SESSION_UID' ? metadata.uid : undefined;
  };
}

function environment(session: CachedSession, settings: Effective, turn: RunnerlessTurn): EnvVar[] {
  const fits = Buffer.byteLength(`BERTH_INPUT=${turn.input}`) < MAX_VARIABLE_BYTES;
  const given: Record<string, string> = {
    HOME: '/tmp',
    BERTH_SESSION: session.metadata.name,
    BERTH_TURN: turn.name,
    [START_MARKER]: settings.markers.start,
    [END_MARKER]: settings.markers.end,
    ...(settings.secretFiles.length > 0 ? { BERTH_SECRETS_DIR: SECRETS_DIRECTORY } : {}),
    ...(fits ? { BERTH_INPUT: verbatim(turn.input) } : {}),
  };
  const byVariable = new Map(settings.secrets.map((secret) => [secret.variable, secret]));
  return [
    ...Object.entries(given).map(([name, value]) => ({ name, value })),
    ...settings.agent.env.map((entry): EnvVar => {
      if ('value' in entry) {
        return { name: entry.name, value: verbatim(expand(entry.value, standardVariables(session))) };
      }
      const { name = '', key = '' } = byVariable.get(entry.secret) ?? {};
      return { name: entry.name, valueFrom: { secretKeyRef: { name, key } } };
    }),
  ];
}
