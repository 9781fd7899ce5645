import { anySignal } from '../../core/abort.ts';
import { ApiError } from '../../core/kube/errors.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import { type StoredSession, sessions } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Cli } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { turnsOf } from '../cluster/stored.ts';
import { refuseUnlessAllowed } from '../create/allowed.ts';
import { CliError, EXIT, refused } from '../errors.ts';
import { followObject } from '../follow/object.ts';
import { printableLine } from '../print/printable.ts';
import { endsFirst } from '../wait/pod-release.ts';
import type { Classes, Selected } from './selected.ts';

export interface RestartMany {
  /** Maximum number of sessions that are being restarted at the same time. */
  max: number;
  /** Maximum time of each wait, a duration. */
  timeout?: string;
  /** True to cancel the turn that keeps a session's pod. */
  now?: boolean;
}

/**
 * Fate of a session. Restarted: it is ready in a new pod, or has none. Asked: it restarts, and nobody waited for that.
 * Failed: its new pod does not start, or did not within the time. Refused: it was not asked for, because no pod could follow.
 * Gone: it was deleted, or its pod was, before it was asked for. NotAsked: the command ended before its turn came.
 */
export type Outcome = 'Restarted' | 'Asked' | 'Failed' | 'Refused' | 'Gone' | 'NotAsked';

export interface Restarted {
  session: StoredSession;
  outcome: Outcome;
  message: string;
}

/**
 * Restarts the sessions in their order, at most `max` at the same time: asks for it, and waits until the session is ready again or has
 * no pod. Ctrl-C, and a session that fails, end the asking; the waits for those that were asked go on after a failure and end
 * with Ctrl-C. `tell` gets each session once, as it comes.
 */
export async function restartMany(
  selected: readonly Selected[],
  { max, timeout, now = false }: RestartMany,
  classes: Classes,
  cluster: Cluster,
  cli: Cli,
  tell: (restarted: Restarted) => Promise<void>,
): Promise<void> {
  const waiting = [...selected];
  let isStopped = false;
  const isOver = () => isStopped || cli.interrupted.aborted;
  const worker = async () => {
    while (!isOver()) {
      const next = waiting.shift();
      if (!next) return;
      const { session } = next;
      const ended = await restartOne(session, { timeout, now }, classes, cluster, cli);
      isStopped ||= ended.outcome === 'Failed';
      await tell({ session, ...ended });
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(max, selected.length) }, worker));
  } finally {
    isStopped = true;
  }
  for (const { session } of waiting) await tell({ session, outcome: 'NotAsked', message: 'not asked to restart' });
}

type Ended = Omit<Restarted, 'session'>;

async function restartOne(
  session: StoredSession,
  { timeout, now }: { timeout: string | undefined; now: boolean },
  classes: Classes,
  cluster: Cluster,
  cli: Cli,
): Promise<Ended> {
  const here = { ...cluster, namespace: session.metadata.namespace };
  try {
    // A pod that could have no successor is kept.
    const ofClass = await classes(session.spec.class);
    if (ofClass === 'NotFound') throw refused(`there is no SessionClass "${session.spec.class}"`);
    refuseUnlessAllowed(session.spec, ofClass);
    const asked = await cluster.restart(session, cli.interrupted);
    if (now) await cancelRunning(asked, here, cli);
    return await untilBack(asked, timeout, here, cli);
  } catch (error) {
    if (cli.interrupted.aborted) return { outcome: 'Asked', message: 'asked to restart; it does so once it can' };
    if (error instanceof ApiError && error.code === 404) return { outcome: 'Gone', message: error.message };
    if (error instanceof CliError && error.exitCode === EXIT.refused) {
      return { outcome: 'Refused', message: error.message };
    }
    // An outage of the cluster ends the command; what one session is refused ends the asking.
    if (error instanceof ApiError && error.code < 500 && error.code !== 401 && error.code !== 429) {
      return { outcome: 'Failed', message: error.message };
    }
    throw error;
  }
}

/** Cancels the turn that keeps the session's pod. A turn that waits for an approval does not keep it. */
export async function cancelRunning(session: StoredSession, cluster: Cluster, cli: Cli): Promise<void> {
  const running = (await turnsOf(cluster, session, cli.interrupted)).filter(
    ({ status }) => status?.phase === 'Running',
  );
  await Promise.all(running.map((turn) => cluster.cancelTurn(turn, cli.interrupted)));
}

/** Waits until the session has left the pod that it has now, and is ready in another one or has none. */
async function untilBack(
  asked: StoredSession,
  timeout: string | undefined,
  cluster: Cluster,
  cli: Cli,
): Promise<Ended> {
  const { name, uid } = asked.metadata;
  const pod = asked.status?.podName;
  if (pod === undefined) return { outcome: 'Gone', message: 'has no pod any more' };
  const late = timeout === undefined ? undefined : AbortSignal.timeout(parseDuration(timeout));
  const signal = late ? anySignal(cli.interrupted, late) : cli.interrupted;
  let said = '';
  try {
    for await (const session of followObject(cluster, sessions, name, { clock: cli.clock, signal })) {
      if (session?.metadata.uid !== uid) return { outcome: 'Gone', message: 'was deleted' };
      const ended = await judge(session, pod, cluster, cli);
      if (ended) return ended;
      const turn = session.status?.podName === pod ? endsFirst(session) : undefined;
      const waits = turn ? `turn ${turn} ends first` : '';
      if (waits && waits !== said) cli.say(`waiting: ${printableLine(`session ${name}: ${waits}`)}`);
      said = waits || said;
    }
  } catch (error) {
    if (!late?.aborted || cli.interrupted.aborted) throw error;
    return { outcome: 'Failed', message: `has not restarted within ${timeout}; it still does once it can` };
  }
  throw new Error('following a session ended without its end');
}

/** Returns the fate of a session that was to leave its pod; undefined while it is still to leave. */
async function judge(session: StoredSession, pod: string, cluster: Cluster, cli: Cli): Promise<Ended | undefined> {
  const { spec, status = {} } = session;
  const { podName, startFailures, queue, phase } = status;
  if (podName === pod) return undefined;
  if (startFailures) {
    return {
      outcome: 'Failed',
      message: `its new pod does not start: ${startFailures.reason}: ${startFailures.message}`,
    };
  }
  if (podName !== undefined) {
    const isReady = status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    return isReady ? { outcome: 'Restarted', message: 'restarted' } : undefined;
  }
  const rests = { outcome: 'Restarted' as const, message: 'restarted; its next turn starts a new pod' };
  // A turn that has no pod for one of these reasons does not wait for the restart.
  if (spec.suspend || queue || phase === 'Finished') return rests;
  const turns = await turnsOf(cluster, session, cli.interrupted);
  const isWaitedFor = turns.some(({ status }) => !isTerminal(status?.phase) && status?.phase !== 'AwaitingApproval');
  return isWaitedFor ? undefined : rests;
}
