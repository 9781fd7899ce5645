import { isConflict } from '../../core/kube/errors.ts';
import { turns } from '../../core/resources/kinds.ts';
import type { Action } from '../decide/actions.ts';
import { learn } from '../observed/memory.ts';
import type { ReconcileContext } from './context.ts';

/** A result that comes meanwhile waits for it. */
const DEADLINE_MS = 1_000;

/**
 * Shows how far a running turn is, at the version decided upon. Nothing depends on it, so errors are ignored: a write in
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
