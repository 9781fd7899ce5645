import { type StoredSession, type StoredTurn, sessions, turns } from '../../../core/resources/kinds.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Reports whether the turn has begun and not ended. A turn that waits for a decision counts, because it comes back. */
const begun = ({ status }: StoredTurn) => status?.phase === 'Running' || status?.phase === 'AwaitingApproval';

const groupOf = ({ metadata, spec }: StoredSession) =>
  spec.concurrencyGroup && `${metadata.namespace}/${spec.concurrencyGroup.name}`;

/** Time from a decision to its last write, which other writes and the answer of a runner may hold up, milliseconds. */
const DECIDED_MS = 30_000;

/** A group that a session was in, from a time on. */
interface Stay {
  at: number;
  group: string | undefined;
  limit: number | undefined;
}

/**
 * A turn says in which concurrency group it has begun: one that its session was in, as far as the controller knew. The turns of
 * a group that have begun and not ended never exceed the lowest limit of its sessions. The
 * share of a turn may have been reserved when its session was admitted; limits of sessions that the leader did not know
 * then do not count.
 */
export const groups: MakeInvariant = (facts) => {
  /** Session → the groups that it was in, in order. */
  const stays = new Map<string, Stay[]>();
  /** Session → the time up to which the controller that admitted it knew of sessions. */
  const knew = new Map<string, number>();
  const lastStay = (uid: string) => stays.get(uid)?.at(-1);
  return {
    committed(change) {
      const { storage, type, object, previous } = change;
      const call = facts.callBehind(change);
      if (storage === SESSIONS) {
        const session = object as unknown as StoredSession;
        const { uid } = session.metadata;
        const stay = { at: facts.kubelets.now, group: groupOf(session), limit: session.spec.concurrencyGroup?.limit };
        const before = lastStay(uid);
        if (!before || before.group !== stay.group || before.limit !== stay.limit)
          stays.set(uid, [...(stays.get(uid) ?? []), stay]);
        const podName = (one: typeof previous) => (one as unknown as StoredSession | undefined)?.status?.podName;
        if (call && podName(object) !== podName(previous)) knew.set(uid, facts.knewUntil(call, ['sessions']));
      }
      if (storage !== TURNS || type === 'DELETED') return;
      const was = previous as unknown as StoredTurn | undefined;
      const turn = object as unknown as StoredTurn;
      if (!begun(turn) || (was && begun(was))) return;
      const all = facts.server.list(sessions);
      const own = all.find(({ metadata }) => metadata.uid === ownerOf(turn));
      if (!own) return;
      const { namespace, uid } = own.metadata;
      const name = turn.status?.concurrencyGroup;
      const group = name === undefined ? undefined : `${namespace}/${name}`;
      const knewUntil = call ? facts.knewUntil(call, ['sessions'], DECIDED_MS) : 0;
      const had = (stays.get(uid) ?? []).filter(
        (_, i, list) => (list[i + 1]?.at ?? Number.POSITIVE_INFINITY) >= knewUntil,
      );
      if (!had.some((stay) => stay.group === group))
        facts.fail('groups', `turn ${turn.metadata.name} says that it began in ${group}, its session was not there`);
      if (group === undefined) return;
      const beside = facts.server
        .list(turns)
        .filter(({ metadata }) => metadata.uid !== turn.metadata.uid && metadata.namespace === namespace)
        .filter((other) => begun(other) && other.status?.concurrencyGroup === name);
      const known = knew.get(uid) ?? 0;
      const limits = all
        .filter((member) => groupOf(member) === group)
        .filter(({ metadata, status }) => {
          if (status?.phase === 'Finished' || metadata.deletionTimestamp) return false;
          const isFirst = stays.get(metadata.uid)?.length === 1;
          return (metadata.uid === uid && isFirst) || (lastStay(metadata.uid)?.at ?? 0) < known;
        })
        .map(({ spec }) => spec.concurrencyGroup?.limit ?? Number.POSITIVE_INFINITY);
      const limit = Math.min(...limits);
      if (beside.length < limit) return;
      const names = beside.map(({ metadata }) => metadata.name).join(', ');
      facts.fail('groups', `turn ${turn.metadata.name} runs beside ${names} in ${group}, the limit is ${limit}`);
    },
  };
};
