import { ApiError, isConflict } from '../../core/kube/errors.ts';
import { pods } from '../../core/kube/resources.ts';
import { mayRetry } from '../../core/kube/retry.ts';
import { turns } from '../../core/resources/kinds.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import { bodyFacts } from '../caches/slim.ts';
import type { Action } from '../decide/actions.ts';
import { learn } from '../observed/memory.ts';
import type { CachedTurn } from '../observed/world.ts';
import type { RunnerlessTurn } from '../pod/runnerless-pod.ts';
import type { ReconcileContext } from './context.ts';

/** Effects on runnerless pods; see `decide/policies/runnerless.ts`. */

/** The turn with its input, from the live object; undefined when that is not the turn of the decision. */
export async function runnerlessTurn(
  { effects, signal }: ReconcileContext,
  turn: CachedTurn,
): Promise<RunnerlessTurn | undefined> {
  const { api } = effects;
  const { uid, name, namespace } = turn.metadata;
  const live = await api.get(turns, { namespace, name }, { signal });
  if (live.metadata.uid !== uid || bodyFacts(live.spec.input).digest !== turn.input.digest) return undefined;
  return { uid, name, input: JSON.stringify(live.spec.input ?? null) };
}

/** Removes the scheduling gate. The program may have run from then on, whether the answer arrives or not. */
export async function letRun(
  { effects, memory, signal }: ReconcileContext,
  { pod }: Action & { do: 'LetRun' },
): Promise<void> {
  const { uid, name, namespace } = pod.metadata;
  learn(memory, { fact: 'RunLet', podUID: uid });
  const patch = { metadata: { uid }, spec: { schedulingGates: null } };
  await effects.api.patch(pods, { namespace, name }, patch, { type: 'merge', signal });
}

/** Time left to this leader, milliseconds, before a successor can give the input too. */
const LAST_MS = 1_000;

/**
 * Writes the input to a running program, and closes its stdin. A write that has begun continues for a moment after the end of
 * the leadership, because it cannot be repeated: the stdin that a successor writes to is already closed. After that moment
 * the write is cut off, even if the program has not read all of it. Otherwise the program could get both inputs, mixed.
 */
export async function giveInput(context: ReconcileContext, { pod, turn }: Action & { do: 'GiveInput' }): Promise<void> {
  const { effects, memory, key, signal } = context;
  const { uid, name, namespace } = pod.metadata;
  const given = await runnerlessTurn(context, turn);
  if (!given) return;
  try {
    const ref = { namespace, name };
    const stream = await effects.api.attach(ref, { container: CONTAINER, stdin: true });
    const onEnd = () => effects.clock.setTimer(LAST_MS, () => stream.close());
    if (signal.aborted) onEnd();
    else signal.addEventListener('abort', onEnd, { once: true });
    void stream.closed.then(() => signal.removeEventListener('abort', onEnd));
    // The kubelet ends the attach when the program has its input, or ends without.
    stream.write(`${given.input}\n`).then(
      () => stream.closeStdin(),
      (error: Error) => effects.log.debug({ session: key, pod: name, err: error }, 'input not read to its end'),
    );
  } catch (error) {
    // The program has it in its environment, or waits until its time is over: nobody else can pass it on.
    if (!(error instanceof ApiError) || isConflict(error) || mayRetry(error, true)) throw error;
    effects.log.warn({ session: key, pod: name, err: error }, 'input could not be written to stdin');
  }
  learn(memory, { fact: 'InputGiven', podUID: uid });
}
