import { keyOf } from '../../core/kube/cache.ts';
import { isConflict, isForbidden, isInvalid, isNotFound, isTooLarge } from '../../core/kube/errors.ts';
import { approvals, ownedByTurn, type StoredTurn, sessionOwner, turns } from '../../core/resources/kinds.ts';
import type { CachedApproval } from '../observed/world.ts';
import { type GarbageTools, MAX_REMOVALS } from './context.ts';

/**
 * Handles Approvals that came after their turn had ended, when no decision reads them: records one Event for each and
 * makes the turn its owner. Starts after the key `after`, in order of keys, and resolves with the last key handled if
 * there are more. Approvals whose turn does not exist stay, and must not hold up the others.
 */
export async function sweepApprovals(
  tools: GarbageTools,
  after: string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { api, caches } = tools;
  const late = caches
    .allApprovals()
    .filter(({ metadata }) => !metadata.ownerReferences?.length && !metadata.deletionTimestamp)
    .filter(({ metadata }) => !caches.closed(metadata.namespace))
    .filter(({ metadata, spec }) => !caches.turn(metadata.namespace, spec.turn))
    .map((approval) => ({ approval, key: keyOf(approval.metadata) }))
    .filter(({ key }) => after === undefined || key > after)
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const { approval } of late.slice(0, MAX_REMOVALS)) {
    signal.throwIfAborted();
    const ref = { namespace: approval.metadata.namespace, name: approval.spec.turn };
    try {
      await adopt(tools, approval, await api.get(turns, ref, { signal }));
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) continue;
      // Approvals that may not get an owner, or are too large for one, stay.
      if (!isForbidden(error) && !isInvalid(error) && !isTooLarge(error)) throw error;
      const { name, namespace } = approval.metadata;
      tools.log.warn({ approval: name, namespace, err: error }, 'approval could not be adopted by its turn');
    }
  }
  return late.length > MAX_REMOVALS ? late[MAX_REMOVALS - 1]?.key : undefined;
}

async function adopt(
  { api, notify, removals }: GarbageTools,
  { metadata, spec }: CachedApproval,
  turn: StoredTurn,
): Promise<void> {
  const { name, uid, resourceVersion } = metadata;
  const namespace = metadata.namespace;
  const patch = { metadata: { uid, resourceVersion, ownerReferences: [ownedByTurn(turn)] } };
  await api.patch(approvals, { namespace, name }, patch, { type: 'merge', signal: removals });
  if (turn.status?.approval?.decided?.approval === name) return;
  const session = sessionOwner(turn.metadata);
  if (!session) return;
  const message = `Approval ${name} for request "${spec.requestId}" of turn ${spec.turn} counts for nothing: the turn has ended.`;
  const event = { type: 'Warning', reason: 'ApprovalIgnored', message } as const;
  notify({ metadata: { namespace, name: session.name, uid: session.uid } }, event);
}
