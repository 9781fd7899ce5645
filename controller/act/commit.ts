import { ApiError, isConflict, isInvalid, isTooLarge } from '../../core/kube/errors.ts';
import type { Stored } from '../../core/kube/types.ts';
import { turns } from '../../core/resources/kinds.ts';
import { isTerminal, type TurnStatus } from '../../core/resources/turn.ts';
import { outcomeOf } from '../decide/outcome.ts';
import { ended } from '../decide/turn-status.ts';
import type { Delivery } from '../link/view.ts';
import type { CachedTurn } from '../world.ts';
import type { Pass } from './context.ts';
import { storeDelivery } from './store-delivery.ts';
import { writeStatus } from './write-status.ts';

type Version = Pick<Stored['metadata'], 'namespace' | 'name' | 'uid' | 'resourceVersion'>;

/**
 * Makes a result durable: first what is large goes into the store, then one status write ends the turn, at the version
 * decided upon; only then the runner may forget. Repeating any part of it is harmless.
 */
export async function commit(pass: Pass, turn: CachedTurn, delivery: Delivery): Promise<void> {
  const { effects, memory, key, signal } = pass;
  const stored = await storeDelivery(pass, delivery);
  const status = ended(turn, outcomeOf(delivery, stored), effects.clock.now());
  const written = await end(pass, turn, status);
  memory.commitProblem = undefined;
  memory.failedStarts = undefined;
  // The runner takes what it sent for stored: its pod cannot be gone on from.
  const unstored = stored.problems.some(({ reason }) => reason === 'StateNotStored');
  if (unstored && turn.status.podUID) memory.unstored = { podUID: turn.status.podUID };
  effects.links.get(turn.status.podUID)?.acknowledge(delivery.result.seq);
  effects.log.info({ session: key, turn: turn.metadata.name, phase: status.phase }, 'turn committed');
  // Last: whoever sees the turn ended may count on everything before.
  if (written && !signal.aborted) effects.caches.sawTurn(written);
}

async function end(pass: Pass, turn: CachedTurn, status: TurnStatus) {
  const { effects, signal, key } = pass;
  const { api, log } = effects;
  const write = async (version: Version, next: TurnStatus) => {
    try {
      return await writeStatus(api, turns, version, next, signal);
    } catch (error) {
      if (!isRejected(error)) throw error;
      log.warn({ session: key, turn: turn.metadata.name, err: error }, 'result rejected by the API server');
      return await writeStatus(api, turns, version, rejected(turn, error as Error, effects.clock.now()), signal);
    }
  };
  try {
    return await write(turn.metadata, status);
  } catch (error) {
    if (!isConflict(error)) throw error;
    // A cancellation changes the version and not who runs the turn; anything else is somebody else's commit.
    const ref = { namespace: turn.metadata.namespace as string, name: turn.metadata.name };
    const live = await api.get(turns, ref, { signal });
    if (live.metadata.uid !== turn.metadata.uid || isTerminal(live.status?.phase)) return live;
    if (live.status?.podUID !== turn.status.podUID || live.status?.attempt !== turn.status.attempt) throw error;
    return await write(live.metadata, status);
  }
}

/** Too large for etcd comes as 500 with this text from the API server. */
function isRejected(error: unknown): boolean {
  return (
    isInvalid(error) || isTooLarge(error) || (error instanceof ApiError && /request is too large/.test(error.message))
  );
}

function rejected(turn: CachedTurn, error: Error, now: number): TurnStatus {
  const message = `The API server did not take the result: ${error.message}`;
  return ended(turn, { phase: 'Failed', reason: 'ResultRejected', message }, now);
}
