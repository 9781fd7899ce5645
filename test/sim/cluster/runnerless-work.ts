import type { StoredPod } from '../../../core/kube/builtin.ts';
import { LABEL_INCARNATION, LABEL_RUNNER, LABEL_SESSION_UID, LABEL_TURN_UID } from '../../../core/resources/names.ts';
import type { RunnerlessWork } from './runnerless-container.ts';

/** Returns the work of a runnerless pod; undefined for a pod with a runner. */
export function runnerlessWork({ metadata: { labels = {} }, spec }: StoredPod): RunnerlessWork | undefined {
  if (labels[LABEL_RUNNER] !== 'None') return undefined;
  const env = new Map(spec.containers.flatMap(({ env = [] }) => env.map(({ name, value }) => [name, value ?? ''])));
  return {
    turn: labels[LABEL_TURN_UID] ?? '',
    sessionUID: labels[LABEL_SESSION_UID] ?? '',
    incarnation: Number(labels[LABEL_INCARNATION]),
    input: env.get('BERTH_INPUT')?.replaceAll('$$', '$') ?? '{}',
    markers: {
      start: env.get('BERTH_RESULT_START_MARKER') ?? '',
      end: env.get('BERTH_RESULT_END_MARKER') ?? '',
    },
  };
}
