import type { FrameOf, Result } from '../../core/frames/messages.ts';
import type { StoredPod } from '../../core/kube/builtin.ts';
import { pods } from '../../core/kube/resources.ts';
import { openLog } from '../../core/pod-log/open.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import { redactionOf } from '../../core/resources/redaction.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { Action } from '../decide/actions.ts';
import { ownContainer } from '../observed/pod-status.ts';
import { RunnerlessLog } from '../pod/runnerless-log.ts';
import { END_MARKER, START_MARKER } from '../pod/runnerless-pod.ts';
import { DEFAULT_MARKERS } from '../settings/image.ts';
import { ended } from '../status/turn-status.ts';
import { commit } from './commit.ts';
import type { ReconcileContext } from './context.ts';
import { endedLog, isUnreadable } from './unreadable-log.ts';
import { writeTurn } from './write-turn.ts';

/** A pod without a runner has one turn, and that has one log and one result. */
const LOG_SEQ = 1;
const RESULT_SEQ = 2;

/** Ends a turn with what its ended pod has printed. The log stays until the pod goes, so this can be repeated. */
export async function commitLog(
  context: ReconcileContext,
  { turn, pod, lost }: Action & { do: 'CommitLog' },
): Promise<void> {
  const { effects } = context;
  const { clock } = effects;
  const log = await readLog(context, pod);
  if (log === 'Unreadable') {
    const message =
      'The log of the pod cannot be read, so what the turn did is unknown; give the turn again if it may run twice.';
    const status = lost ?? ended(turn, { phase: 'Failed', reason: 'PodLost', message }, clock.now());
    return end(status);
  }
  const { block, log: text } = log.finish();
  if (lost && block.type === 'None') return end(lost);
  const attempt = turn.status.attempt ?? 1;
  const { terminated } = ownContainer(pod)?.state ?? {};
  const now = new Date(clock.now()).toISOString();
  const exitCode = lost ? undefined : terminated?.exitCode;
  const late = block.type === 'None' && exitCode === 0 ? await lateness(context, pod) : undefined;
  const { asks: _a, ...conclusion } = log.conclude(block, text.text, exitCode, late);
  const message: Result = {
    ...conclusion,
    turn: turn.metadata.uid,
    attempt,
    startedAt: terminated?.startedAt ?? now,
    finishedAt: terminated?.finishedAt ?? now,
    state: 'Unchanged',
    leftRunning: [],
  };
  const empty = Buffer.alloc(0);
  const result: FrameOf<'result'> = { seq: RESULT_SEQ, kind: 'result', message, binary: empty };
  const logged: FrameOf<'log'> = {
    seq: LOG_SEQ,
    kind: 'log',
    message: { turn: turn.metadata.uid, attempt, ...text },
    binary: empty,
  };
  await commit(context, turn, { result, ...(text.bytes > 0 ? { log: logged } : {}) });

  async function end(status: TurnStatus): Promise<void> {
    await writeTurn(context, turn, status);
  }
}

/** A log without anything of so much of its program's beginning may have lost it to rotation. */
const SILENCE_MS = 2000;

/**
 * Seconds from the program's start to the first line that is left of its log, or to its end where no line is left. A kubelet
 * that rotates after the last line leaves an empty file. Undefined where they are few.
 */
async function lateness({ effects, signal }: ReconcileContext, pod: StoredPod): Promise<number | undefined> {
  const { startedAt = '', finishedAt = '' } = ownContainer(pod)?.state?.terminated ?? {};
  let first = '';
  const options = { timestamps: true, limitBytes: 64, signal };
  for await (const piece of openLog(effects.api, pod.metadata, options)) first += piece.toString('latin1');
  const lateMs = Date.parse(first.split(' ')[0] || finishedAt) - Date.parse(startedAt);
  return lateMs > SILENCE_MS ? Math.round(lateMs / 1000) : undefined;
}

/** Reads with the markers and the redaction rules of the pod's creation: those of the class may have changed. */
async function readLog(context: ReconcileContext, pod: StoredPod): Promise<RunnerlessLog | 'Unreadable'> {
  const { effects, signal, world } = context;
  const { name, uid, namespace } = pod.metadata;
  try {
    const live = await effects.api.get(pods, { namespace, name }, { signal });
    if (live.metadata.uid !== uid) return 'Unreadable';
    const env = live.spec.containers.find(({ name }) => name === CONTAINER)?.env;
    const value = (variable: string) => env?.find(({ name }) => name === variable)?.value;
    const start = value(START_MARKER) || DEFAULT_MARKERS.start;
    const end = value(END_MARKER) || DEFAULT_MARKERS.end;
    const log = new RunnerlessLog({ start, end }, redactionOf(live, world.class));
    for await (const piece of endedLog(context, openLog(effects.api, pod.metadata, { signal }))) log.push(piece);
    return log;
  } catch (error) {
    if (signal.aborted) throw error;
    if (!isUnreadable(context, uid, error)) throw error;
    return 'Unreadable';
  }
}
