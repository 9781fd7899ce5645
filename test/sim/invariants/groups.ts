import { type StoredSession, type StoredTurn, sessions, turns } from '../../../core/resources/kinds.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Reports whether the turn has begun and not ended. A turn that waits for a decision counts, because it comes back. */
const begun = ({ status }: StoredTurn) => status?.phase === 'Running' || status?.phase === 'AwaitingApproval';

const groupOf = ({ metadata, spec }: StoredSession) =>
  spec.concurrencyGroup && `${metadata.namespace}/${spec.concurrencyGroup.name}`;

/**
 * The turns of a concurrency group that have begun and not ended never exceed the lowest limit of its sessions. The
 * share of a turn may have been reserved when its session was admitted; limits of sessions that the leader did not know
 * then do not count.
 */
export const groups: MakeInvariant = (facts) => {
  const createdAt = new Map<string, number>();
  /** Session → the time up to which the controller that admitted it knew of sessions. */
  const knew = new Map<string, number>();
  return {
    committed(change) {
      const { storage, type, object, previous } = change;
      if (storage === SESSIONS) {
        if (type === 'ADDED') createdAt.set(object.metadata.uid ?? '', facts.kubelets.now);
        const podName = (one: typeof previous) => (one as unknown as StoredSession | undefined)?.status?.podName;
        const call = facts.callBehind(change);
        if (call && podName(object) !== podName(previous))
          knew.set(object.metadata.uid ?? '', facts.knewUntil(call, ['sessions']));
      }
      if (storage !== TURNS || type === 'DELETED') return;
      const was = previous as unknown as StoredTurn | undefined;
      const turn = object as unknown as StoredTurn;
      if (!begun(turn) || (was && begun(was))) return;
      const all = facts.server.list(sessions);
      const own = all.find(({ metadata }) => metadata.uid === ownerOf(turn));
      const group = own && groupOf(own);
      if (!group) return;
      const members = all.filter((session) => groupOf(session) === group);
      const uids = new Set<string | undefined>(members.map(({ metadata }) => metadata.uid));
      const beside = facts.server
        .list(turns)
        .filter((other) => other.metadata.uid !== turn.metadata.uid && begun(other) && uids.has(ownerOf(other)));
      const known = knew.get(own.metadata.uid) ?? 0;
      const limits = members
        .filter(({ metadata, status }) => {
          if (status?.phase === 'Finished' || metadata.deletionTimestamp) return false;
          return metadata.uid === own.metadata.uid || (createdAt.get(metadata.uid) ?? 0) < known;
        })
        .map(({ spec }) => spec.concurrencyGroup?.limit ?? Number.POSITIVE_INFINITY);
      const limit = Math.min(...limits);
      if (beside.length < limit) return;
      const names = beside.map(({ metadata }) => metadata.name).join(', ');
      facts.fail('groups', `turn ${turn.metadata.name} runs beside ${names} in ${group}, the limit is ${limit}`);
    },
  };
};
