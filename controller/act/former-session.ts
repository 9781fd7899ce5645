import { ifThere, isConflict, isNotFound } from '../../core/kube/errors.ts';
import { ownedBy, sessions, turns, withOwner } from '../../core/resources/kinds.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { CachedTurn, World } from '../observed/world.ts';
import type { ReconcileContext } from './context.ts';
import { writingTurn } from './too-large.ts';

/** Effects on turns of a session that is gone. A live read finds out first which session has the name now. */

/** Takes in a turn without an owner. A session that is gone would take the turn with it. */
export async function adoptTurn(context: ReconcileContext, turn: CachedTurn): Promise<void> {
  const { effects, world, signal } = context;
  const { session } = world;
  if (!(await isPresent(context))) return;
  const { name, namespace, uid, resourceVersion } = turn.metadata;
  const ownerReferences = withOwner(turn.metadata.ownerReferences, ownedBy(session));
  const patch = { metadata: { uid, resourceVersion, ownerReferences } };
  const ref = { namespace, name };
  const write = () => effects.api.patch(turns, ref, patch, { type: 'merge', signal });
  await writingTurn(effects, turn, write);
}

/** Ends a turn that another session than the present one owns, unless that one is newer than the cache. */
export async function endReplaced(context: ReconcileContext, turn: CachedTurn, status: TurnStatus): Promise<void> {
  const { effects, signal } = context;
  if (!(await isPresent(context))) return;
  try {
    await writingTurn(effects, turn, () => effects.statuses.write(turns, turn.metadata, status, signal));
  } catch (error) {
    // The garbage collector is after it as well.
    if (!isConflict(error) && !isNotFound(error)) throw error;
  }
}

/** Worlds whose session is gone by a live read: decisions about its other turns need no read any more. */
const outdated = new WeakSet<World>();

/** Reports whether the session of the world still has its name. */
async function isPresent({ effects, world, signal }: ReconcileContext): Promise<boolean> {
  if (outdated.has(world)) return false;
  const { name, namespace, uid } = world.session.metadata;
  const live = await ifThere(effects.api.get(sessions, { namespace, name }, { signal }));
  if (live?.metadata.uid === uid) return true;
  outdated.add(world);
  return false;
}
