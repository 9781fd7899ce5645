import { type StoredSession, sessions } from '../../../core/resources/kinds.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import type { ControllerCall } from '../observer.ts';
import { CLOCK_MS } from './clocks.ts';
import { LEASES, SESSIONS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { knewLimits, Slots, scopes } from './slots.ts';
import { Waiting } from './waiting.ts';

/** A position is written so often at most. */
const WRITE_MS = 10_000;

/** When the leader gave places to sessions of each namespace, in its order: 1, 2, … */
class Served {
  #count = 0;
  /** Counted once for a place, and each time that it is asked for. */
  readonly surely = new Map<string, number>();
  readonly perhaps = new Map<string, number>();

  serve(namespace: string, first: boolean): void {
    this.#count++;
    this.perhaps.set(namespace, this.#count);
    if (first) this.surely.set(namespace, this.#count);
  }

  /** Whether it was the turn of `a` before that of `b`, for sure. */
  isBefore(a: string, b: string): boolean {
    return (this.perhaps.get(a) ?? 0) < (this.surely.get(b) ?? 0);
  }
}

/** In its namespace: whether `a` comes before `b`, for sure. `b` may stand in line or only be about to. */
function comesBefore(a: StoredSession, b: StoredSession): boolean {
  const [priorityA, priorityB] = [a.spec.priority ?? 0, b.spec.priority ?? 0];
  if (priorityA !== priorityB) return priorityA > priorityB;
  const since = (session: StoredSession) => {
    const { queue, incarnation } = session.status ?? {};
    // One that is woken has waited since the turn that wakes it.
    return queue?.since ?? (incarnation ? undefined : session.metadata.creationTimestamp);
  };
  return Date.parse(since(a) ?? '') < Date.parse(since(b) ?? '');
}

/**
 * A place is given to whoever comes first: round robin over namespaces, then priority, then age. Whenever a leader gives
 * the last place that a session in line could have, it is not that session's turn; one that its own class, group or an
 * earlier failure holds back is passed over. And the position of one that waits counts all who are sure to come before it;
 * it is written anew every ten seconds at most.
 */
export const inTurn: MakeInvariant = (facts, limits) => {
  const slots = new Slots(facts, limits);
  const waiting = new Waiting(facts);
  const { server } = facts;
  let leader: string | undefined;
  let transitions: unknown;
  let served = new Served();
  /** Slots that the leader has given and that nobody can see yet. */
  const underWay = new Map<ControllerCall, { pod: string; scopes: readonly string[] }>();

  /** Whether whatever limits `waits` limits `served` too: then there was a place for it if there was one for the other. */
  const isLimitedAlike = (waits: StoredSession, given: readonly string[], since: number) =>
    scopes(waits.spec.class, waits.metadata.namespace)
      .filter((what) => slots.limits(what, since).some(Number.isFinite))
      .every((what) => given.includes(what));

  /** Whether a place for the session is left, by what is taken and what is being given. */
  const isSlotLeft = (session: StoredSession, since: number) => {
    const taken = slots.taken();
    for (const one of underWay.values()) taken.set(one.pod, one.scopes);
    return scopes(session.spec.class, session.metadata.namespace).every((what) => {
      const count = [...taken.values()].filter((all) => all.includes(what)).length;
      return count < Math.max(...slots.limits(what, since));
    });
  };

  const admits = (call: ControllerCall, session: StoredSession, pod: string) => {
    const { namespace, name, uid, resourceVersion } = session.metadata;
    const first = slots.asked(call.process, pod) === call;
    const given = scopes(session.spec.class, namespace);
    underWay.set(call, { pod, scopes: given });
    const isSeen = (call.object as StoredSession).metadata.resourceVersion === resourceVersion;
    const since = knewLimits(facts, call);
    if (first && isSeen) {
      for (const other of waiting.seenBy(call)) {
        if (other.metadata.uid === uid || !isLimitedAlike(other, given, since) || isSlotLeft(other, since)) continue;
        const theirs = other.metadata.namespace;
        const comesFirst = theirs === namespace ? comesBefore(other, session) : served.isBefore(theirs, namespace);
        if (!comesFirst) continue;
        const [passed, got] = [`${theirs}/${other.metadata.name}`, `${namespace}/${name}`];
        facts.fail(
          'in turn',
          `${call.process} gives ${got} the last place that ${passed} could have, which comes first`,
        );
      }
    }
    served.serve(namespace, first);
  };

  const positions = (call: ControllerCall, session: StoredSession) => {
    const { position } = (call.object as StoredSession).status?.queue ?? {};
    const before = session.status?.queue;
    if (position === undefined || position === before?.position) return;
    const { namespace, name, uid } = session.metadata;
    // The session that was decided about is gone, and another has its name: the write is refused.
    if ((call.object as StoredSession).metadata.uid !== uid) return;
    // It was found before whatever else was done first, but after the version that was looked at.
    const versionRead = Number((call.object as StoredSession).metadata.resourceVersion);
    const ahead = waiting.seenBy(call).filter((other) => {
      const isOther = other.metadata.uid !== uid && other.metadata.namespace === namespace;
      return isOther && waiting.since(other) < versionRead && comesBefore(other, session);
    });
    const decidedMsAgo = facts.kubelets.now - facts.sessionCameAt(versionRead);
    if (position > ahead.length && position <= waiting.existing(call, decidedMsAgo).length) return;
    const names = ahead.map(({ metadata }) => metadata.name).join(', ');
    facts.fail('in turn', `session ${name} is told position ${position}; before it come ${names || 'none'}`);
  };

  /** Of the present leader: session → when its position was written, as far as it knows, by two clocks. */
  let written = new Map<string, { at: number; skewMs: number }>();
  const unanswered = new Map<ControllerCall, string>();
  const writes = (change: Change) => {
    const queueOf = (one: Change['previous']) => (one as unknown as StoredSession | undefined)?.status?.queue;
    const [was, is] = [queueOf(change.previous), queueOf(change.object)];
    if (was?.position === is?.position) return;
    const { uid = '', name } = change.object.metadata;
    const { at, skewMs } = written.get(uid) ?? { at: Number.NEGATIVE_INFINITY, skewMs: 0 };
    const call = facts.callBehind(change);
    // A leader whose lease was deleted may write on for a moment: that says nothing of the pace of the present one.
    if (call?.process !== leader) return;
    // A session that leaves the queue is told no position.
    if (call && is) unanswered.set(call, uid);
    const isAlike = was?.reason === is?.reason && server.clock.skewMs === skewMs;
    const ago = Math.round(facts.kubelets.now - at);
    if (isAlike && ago < WRITE_MS - CLOCK_MS)
      facts.fail('in turn', `session ${name} is told another position after ${ago} ms`);
  };

  return {
    sent(call) {
      const session = server.get(sessions, call.namespace, call.name);
      const pod = Slots.askedBy(call, session);
      slots.sent(call);
      if (session && call.verb === 'replace' && call.resource === 'sessions' && call.process === leader) {
        if (pod) admits(call, session, pod);
        else positions(call, session);
      }
      waiting.sent(call);
    },
    answered(call, error) {
      waiting.answered(call, error);
      underWay.delete(call);
      const uid = unanswered.get(call);
      unanswered.delete(call);
      if (uid && !error) written.set(uid, { at: facts.kubelets.now, skewMs: server.clock.skewMs });
    },
    committed(change) {
      slots.committed(change);
      waiting.committed(change);
      if (change.storage === SESSIONS && change.type === 'MODIFIED') writes(change);
      if (change.storage !== LEASES) return;
      const { spec } = change.object as { spec?: { leaseTransitions?: number } };
      if (spec?.leaseTransitions === transitions) return;
      transitions = spec?.leaseTransitions;
      leader = facts.callBehind(change)?.process;
      served = new Served();
      written = new Map();
      underWay.clear();
    },
  };
};
