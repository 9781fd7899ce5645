import { turns as turnKind } from '../../core/resources/kinds.ts';
import { unreadableTurn } from '../caches/slim.ts';
import { culprit, currentTurn, failedAgain } from '../decide/broken.ts';
import { decide } from '../decide/decide.ts';
import { learn } from '../observed/memory.ts';
import type { CachedSession, CachedTurn, World } from '../observed/world.ts';
import { ended, internalError } from '../status/turn-status.ts';
import type { ReconcileContext } from './context.ts';

/** A reconcile that has failed, as far as it had come. */
interface Failed extends Omit<ReconcileContext, 'world'> {
  session: CachedSession;
  world?: World;
  /** Turn of the action under way. */
  turn?: CachedTurn | undefined;
}

/**
 * Ends a turn whose reconcile fails again and again by a programming error, because it would block the session for ever.
 * The next decision gets only the fields of that turn that its end needs. If that decision fails too, the end is written
 * here.
 */
export async function endBrokenTurn(
  { effects, key, session, memory, signal, world, turn: acted }: Failed,
  error: Error,
): Promise<void> {
  const { statuses, caches, clock, log } = effects;
  const { failing, isEnough } = failedAgain(memory.failing, clock.monotonic());
  learn(memory, { fact: 'Failed', failing: isEnough ? undefined : failing });
  if (!isEnough) return;
  const { namespace, name } = session.metadata;
  const turns = caches.turnsNaming(namespace, name);
  const turn = acted ?? (world && culprit(world, decide)) ?? currentTurn(turns);
  if (!turn) return;
  const { uid } = turn.metadata;
  const why = error.message;
  log.error(
    { session: key, turn: turn.metadata.name, err: error },
    'turn ended because its reconcile fails repeatedly',
  );
  const isSecond = memory.broken.has(uid);
  learn(memory, { fact: 'TurnBroken', turn: uid, why });
  if (!isSecond) return;
  const status = ended(unreadableTurn(turn, why), internalError(why), clock.now());
  await statuses.write(turnKind, turn.metadata, status, signal);
  const message = `Turn ${turn.metadata.name}: ${status.error?.message}`;
  effects.notify(session, { type: 'Warning', reason: 'InternalError', message });
}
