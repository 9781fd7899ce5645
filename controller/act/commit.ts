import { isDeepStrictEqual } from 'node:util';
import { ApiError, isConflict, isInvalid, isTooLarge } from '../../core/kube/errors.ts';
import { type StoredTurn, type Turn, turns } from '../../core/resources/kinds.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { slimTurn } from '../caches/slim.ts';
import type { Delivery } from '../observed/link-view.ts';
import { learn } from '../observed/memory.ts';
import type { CachedTurn, Problem } from '../observed/world.ts';
import type { Version } from '../runtime/status-writer.ts';
import { outcomeOf } from '../status/outcome.ts';
import { ended } from '../status/turn-status.ts';
import type { ReconcileContext } from './context.ts';
import { type Deliverable, storeDelivery } from './store-delivery.ts';

/**
 * Makes a result durable: first large parts go into the store, then one status write ends the turn, at the version of
 * the decision; only then the runner may forget. Repeating any part of it is harmless. `lost` is what Kubernetes says of
 * an agent that was stopped with its pod.
 */
export async function commit(
  context: ReconcileContext,
  turn: CachedTurn,
  delivery: Delivery,
  lost?: Problem,
): Promise<void> {
  const { effects, memory, signal } = context;
  const stored = await storeDelivery(context, turn, delivery);
  const outcome = { ...outcomeOf(delivery, stored), ...lost };
  const status = ended(turn, outcome, effects.clock.now());
  const written = await writeAtVersion(context, turn, status);
  learn(memory, { fact: 'SuspensionFailuresOver' });
  letGo(context, delivery, written);
  // Last, because readers of an ended turn rely on all effects before it.
  if (!signal.aborted) remember(context, turn, written);
}

/** Remembers a committed turn: it counts even where the turn is deleted before the next reconcile. */
export function remember({ memory }: Pick<ReconcileContext, 'memory'>, turn: CachedTurn, written: StoredTurn): void {
  if (written.metadata.uid !== turn.metadata.uid) return;
  const { phase, state } = written.status ?? {};
  const uncounted = isTerminal(phase) ? { ended: slimTurn(written) } : {};
  learn(memory, { fact: 'TurnCommitted', state, ...uncounted });
}

/**
 * Acknowledges what is durable, so that the runner may forget it. The runner would continue from a state that is not
 * durable, so its pod is deleted instead. Nothing is acknowledged then, so a successor comes to the same decision.
 */
export function letGo(
  { effects, memory, world }: ReconcileContext,
  delivery: Deliverable,
  turn: Turn | undefined,
): void {
  // The time for storing it is over, or was not needed.
  learn(memory, { fact: 'StoringOver' });
  const { state } = delivery.result.message;
  const podUID = world.link?.podUID;
  const kept = state === 'Unchanged' || turn?.status?.state?.digest === state.digest;
  if (kept) effects.links.get(podUID)?.acknowledge(delivery.result.seq);
  else if (podUID) learn(memory, { fact: 'DeletionAsked', podUID, why: 'its state was not stored' });
}

/**
 * Writes what a runner has delivered once, a result or a request for an approval, at the version of the decision. What the
 * API server does not take ends the turn.
 */
export async function writeAtVersion(context: ReconcileContext, turn: CachedTurn, status: TurnStatus) {
  const { effects, signal, key } = context;
  const { api, statuses, log } = effects;
  const write = async (version: Version, next: TurnStatus) => {
    let rejection: Error;
    try {
      return await statuses.write(turns, version, next, signal);
    } catch (error) {
      if (!isRejected(error)) throw error;
      log.warn({ session: key, turn: turn.metadata.name, err: error }, 'result rejected by the API server');
      rejection = error as Error;
    }
    // The small fields are written with the error; the state is in the store already.
    const { startedAt, finishedAt, exitCode, state } = next;
    for (const fields of [{ startedAt, finishedAt, exitCode, state }, {}]) {
      const status = rejected(turn, rejection, fields, effects.clock.now());
      try {
        return await statuses.write(turns, version, status, signal);
      } catch (error) {
        if (!isRejected(error)) throw error;
        rejection = error as Error;
      }
    }
    throw rejection;
  };
  try {
    return await write(turn.metadata, status);
  } catch (error) {
    if (!isConflict(error)) throw error;
    // A cancellation changes the version and not who runs the turn; anything else is somebody else's commit.
    const ref = { namespace: turn.metadata.namespace, name: turn.metadata.name };
    const live = await api.get(turns, ref, { signal });
    if (live.metadata.uid !== turn.metadata.uid || isTerminal(live.status?.phase)) {
      // Perhaps it was a write of this leader whose answer was lost.
      effects.logCommit(live);
      return live;
    }
    if (isSameRun(live, turn)) return await write(live.metadata, status);
    throw error;
  }
}

/**
 * Reports whether the turn is still as in the decision. Where it runs elsewhere, another commit decides about it. A request that
 * was committed since is not asked again, and its state and its decision stay with the turn; later deliveries do not change them.
 */
function isSameRun({ status: live }: StoredTurn, { status: cached }: CachedTurn): boolean {
  const facts = (status: TurnStatus | undefined) => [status?.podUID, status?.attempt, status?.approval, status?.state];
  return isDeepStrictEqual(facts(live), facts(cached));
}

/** Reports whether a repeated write would be refused again. The API server answers 400 to what it cannot decode. */
function isRejected(error: unknown): boolean {
  return isInvalid(error) || isTooLarge(error) || (error instanceof ApiError && error.code === 400);
}

function rejected(turn: CachedTurn, error: Error, fields: object, now: number): TurnStatus {
  const message = `The API server did not take the result: ${error.message}. Have the agent return less, or write it to a file or service.`;
  return ended(turn, { phase: 'Failed', reason: 'ResultRejected', message, fields }, now);
}

/**
 * Acknowledges a result that fits no running turn of the cache. The cache may be behind, so a live read decides. A result
 * that belongs to no turn is dropped. If the pod holds a state that is stored nowhere, the pod is deleted too.
 */
export async function acknowledgeUnmatched(context: ReconcileContext, delivery: Delivery): Promise<void> {
  const { effects, world, signal } = context;
  const { api, caches, links } = effects;
  const { session } = world;
  const { turn: uid, attempt } = delivery.result.message;
  const namespace = session.metadata.namespace;
  const fieldSelector = `spec.session=${session.metadata.name}`;
  links.get(world.link?.podUID)?.noteUnmatched();
  const { items } = await api.list(turns, { namespace, fieldSelector, signal });
  const cached = world.turns.find(({ metadata }) => metadata.uid === uid);
  caches.saw(turns, ...items);
  const live = items.find((turn) => turn.metadata.uid === uid);
  const { phase, attempt: runs, podUID } = live?.status ?? {};
  // An unchanged turn would be acknowledged again in every reconcile.
  const isNews = live?.metadata.resourceVersion !== cached?.metadata.resourceVersion;
  if (isNews && phase === 'Running' && runs === attempt && podUID === world.link?.podUID) return;
  letGo(context, delivery, live);
}
