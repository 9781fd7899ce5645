import { isConflict, isRefusal } from '../../core/kube/errors.ts';
import { type StoredTurn, turns } from '../../core/resources/kinds.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { Action } from '../decide/actions.ts';
import { learn } from '../observed/memory.ts';
import { isGiven } from '../observed/own-turns.ts';
import type { CachedTurn } from '../observed/world.ts';
import type { ReconcileContext } from './context.ts';
import { writingTurn } from './too-large.ts';

/**
 * Writes the status of a turn. A turn that may have got its index has it, even if the cache shows none, before another turn gets
 * one: where that is not known, the turns are read again.
 */
export async function writeTurn(context: ReconcileContext, turn: CachedTurn, status: TurnStatus): Promise<StoredTurn> {
  try {
    return await write(context, turn, status);
  } catch (error) {
    if (turn.status.index === undefined && !isRefusal(error)) learn(context.memory, { fact: 'TurnsUncertain' });
    throw error;
  }
}

/**
 * Writes the turn. After a conflict the turn is read: the watch may be far behind, and a decision upon what the turn said
 * before would let it say something else than its session. A turn that begins is counted in its concurrency group: where it
 * is not known whether the write took effect, it counts until that is known.
 */
async function write(context: ReconcileContext, turn: CachedTurn, status: TurnStatus): Promise<StoredTurn> {
  const { effects, key, signal } = context;
  const { api, statuses, ledger } = effects;
  const begins = isGiven({ status }) && status.concurrencyGroup !== undefined;
  try {
    const replace = () => statuses.write(turns, turn.metadata, status, signal);
    const written = await writingTurn(effects, turn, replace);
    if (begins) ledger.groups.confirm(key);
    return written;
  } catch (error) {
    if (isConflict(error)) {
      const { name, namespace } = turn.metadata;
      await api.get(turns, { namespace, name }, { signal }).catch((unread) => {
        if (begins) throw unread;
      });
      if (begins) ledger.groups.confirm(key);
    } else if (begins && !isRefusal(error)) ledger.groups.confirmLater(key);
    throw error;
  }
}

/** Deadline of the write, milliseconds. A result that comes before its end waits for it. */
const DEADLINE_MS = 1_000;

/**
 * Shows how far a running turn is, at the version of the decision. Nothing depends on it, so errors are ignored: a write in
 * between is an event of its own, and later figures are tried as well.
 */
export async function showUsage(
  { effects: { statuses, log }, memory, key, signal }: ReconcileContext,
  { turn, status, of }: Action & { do: 'ShowUsage' },
): Promise<void> {
  try {
    await statuses.write(turns, turn.metadata, status, signal, DEADLINE_MS);
  } catch (error) {
    signal.throwIfAborted();
    if (isConflict(error)) return;
    learn(memory, { fact: 'UsageUnwritten', of });
    log.debug({ session: key, turn: turn.metadata.name, err: error }, 'usage of a turn could not be written');
  }
}
