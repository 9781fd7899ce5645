import { ApiError } from '../../../core/kube/errors.ts';
import { type StoredSession, sessions } from '../../../core/resources/kinds.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import type { ControllerCall } from '../observer.ts';
import { CLOCK_MS } from './clocks.ts';
import { LEASES, SESSIONS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { knewLimits, Slots, scopes } from './slots.ts';
import { Waiting } from './waiting.ts';

/** Minimum interval between two writes of a position. */
const WRITE_MS = 10_000;

/** Slot that the leader gave, or tried to give. */
interface Given {
  /** Pod of the slot, as namespace/name. */
  pod: string;
  /** Position in the order of the calls, from 1. */
  number: number;
  scopes: readonly string[];
  /** Reports whether a slot of these scopes was left beside it. */
  wasLeft(scopes: readonly string[]): boolean;
}

/** Slots that the leader gave to each namespace. */
class Served {
  #count = 0;
  /** Namespace → its slots by first requests that were not refused, the latest last. */
  readonly #surely = new Map<string, Given[]>();
  /** Namespace → its last slot, by repeated and refused requests too. */
  readonly #perhaps = new Map<string, Given>();

  serve(namespace: string, first: boolean, slot: Omit<Given, 'number'>): void {
    this.#count++;
    const given = { ...slot, number: this.#count };
    this.#perhaps.set(namespace, given);
    if (first) this.#surely.set(namespace, [...(this.#surely.get(namespace) ?? []), given]);
  }

  refuse(namespace: string, pod: string): void {
    const given = this.#surely.get(namespace) ?? [];
    this.#surely.set(
      namespace,
      given.filter((one) => one.pod !== pod),
    );
  }

  /**
   * Reports whether the turn of namespace `a` certainly came before that of `b`. Slots that are free together are given
   * together, and taken in any order.
   */
  isBefore(a: string, b: string): boolean {
    const [earlier, later] = [this.#perhaps.get(a), this.#surely.get(b)?.at(-1)];
    if (!later) return false;
    return !earlier || (earlier.number < later.number && !earlier.wasLeft(later.scopes));
  }
}

/** Reports whether `a` certainly comes before `b` of the same namespace. `b` may be queued or about to be. */
function comesBefore(a: StoredSession, b: StoredSession): boolean {
  const [priorityA, priorityB] = [a.spec.priority ?? 0, b.spec.priority ?? 0];
  if (priorityA !== priorityB) return priorityA > priorityB;
  const since = (session: StoredSession) => {
    const { queue, incarnation } = session.status ?? {};
    // A suspended session waits since the turn that wakes it.
    return queue?.since ?? (incarnation ? undefined : session.metadata.creationTimestamp);
  };
  return Date.parse(since(a) ?? '') < Date.parse(since(b) ?? '');
}

/** Reports whether the session may wait for a slot: its status says so, or it is new and has none yet. */
function mayWait({ metadata, spec, status }: StoredSession): boolean {
  if (status?.podName || metadata.deletionTimestamp || spec.suspend) return false;
  if (!status?.queue) return !status?.incarnation;
  return status.queue.reason === 'AtCapacity' || status.queue.reason === 'CapacityUnknown';
}

/** Reports whether the API server said no, so that the leader knows that nobody has the slot by this request. */
const isRefused = (error: Error | undefined) => error instanceof ApiError && error.code < 500 && error.code !== 408;

/**
 * Slots are given in order: round robin over namespaces, then priority, then age. A leader gives the last slot that a
 * queued session could have only when that session does not come first. A session that its class, its group or an
 * earlier failure holds back is passed over. A namespace whose session is refused its slot by the API server keeps its turn. Slots that are free together are taken in any order: while the first session
 * of a namespace has yet to take its slot, the turn of the namespace is that session's and no later one's. The position of a waiting session counts all sessions that certainly come
 * before it, and is written every ten seconds at most.
 */
export const inTurn: MakeInvariant = (facts, limits) => {
  const slots = new Slots(facts, limits);
  const waiting = new Waiting(facts);
  const { server } = facts;
  let leader: string | undefined;
  let transitions: unknown;
  let served = new Served();
  /** Slots that the leader has given by calls without an answer. */
  const underWay = new Map<ControllerCall, { pod: string; scopes: readonly string[] }>();

  /** Reports whether every limit of `waits` also limits the given slot, which `waits` could then have had. */
  const isLimitedAlike = (waits: StoredSession, given: readonly string[], since: number) =>
    scopes(waits.spec.class, waits.metadata.namespace)
      .filter((what) => slots.limits(what, since).some(Number.isFinite))
      .every((what) => given.includes(what));

  /** Returns the check whether a slot of given scopes is left beside those that are taken or being given now. */
  const slotsLeft = (since: number) => {
    const taken = slots.taken();
    for (const one of underWay.values()) taken.set(one.pod, one.scopes);
    return (wanted: readonly string[]) =>
      wanted.every((what) => {
        const count = [...taken.values()].filter((all) => all.includes(what)).length;
        return count < Math.max(...slots.limits(what, since));
      });
  };
  const scopesOf = ({ spec, metadata }: StoredSession) => scopes(spec.class, metadata.namespace);

  /** Reports whether an earlier session of its namespace has a slot left beside those that are taken or being given. */
  const isPreceded = (waits: StoredSession, isLeft: (scopes: readonly string[]) => boolean) =>
    server.list(sessions).some((other) => {
      const isOther =
        other.metadata.namespace === waits.metadata.namespace && other.metadata.uid !== waits.metadata.uid;
      return isOther && mayWait(other) && comesBefore(other, waits) && isLeft(scopesOf(other));
    });

  const admits = (call: ControllerCall, session: StoredSession, pod: string) => {
    const { namespace, name, uid, resourceVersion } = session.metadata;
    const first = slots.asked(call.process, pod) === call;
    const given = scopesOf(session);
    underWay.set(call, { pod, scopes: given });
    const isSeen = (call.object as StoredSession).metadata.resourceVersion === resourceVersion;
    const since = knewLimits(facts, call);
    const isLeft = slotsLeft(since);
    if (first && isSeen) {
      for (const other of waiting.seenBy(call)) {
        if (other.metadata.uid === uid || !isLimitedAlike(other, given, since) || isLeft(scopesOf(other))) continue;
        const theirs = other.metadata.namespace;
        const comesFirst =
          theirs === namespace
            ? comesBefore(other, session)
            : served.isBefore(theirs, namespace) && !isPreceded(other, isLeft);
        if (!comesFirst) continue;
        const [passed, got] = [`${theirs}/${other.metadata.name}`, `${namespace}/${name}`];
        facts.fail(
          'in turn',
          `${call.process} gives ${got} the last place that ${passed} could have, which comes first`,
        );
      }
    }
    served.serve(namespace, first, { pod, scopes: given, wasLeft: isLeft });
  };

  /** A leader that does not see the end of the session counts its namespace as served until it is told. */
  const admitsGone = ({ namespace = '', object }: ControllerCall) => {
    const pod = (object as StoredSession).status?.podName;
    if (pod) served.serve(namespace, false, { pod: `${namespace}/${pod}`, scopes: [], wasLeft: () => false });
  };

  const positions = (call: ControllerCall, session: StoredSession) => {
    const { position } = (call.object as StoredSession).status?.queue ?? {};
    const before = session.status?.queue;
    if (position === undefined || position === before?.position) return;
    const { namespace, name, uid } = session.metadata;
    // A write for a deleted session whose name is taken by another is refused.
    if ((call.object as StoredSession).metadata.uid !== uid) return;
    // The position was computed before other work of the reconcile, but after the version that was read. A session counts
    // that was in the queue all that time.
    const versionRead = Number((call.object as StoredSession).metadata.resourceVersion);
    const ahead = waiting.seenBy(call).filter((other) => {
      const isOther = other.metadata.uid !== uid && other.metadata.namespace === namespace;
      return isOther && waiting.hasWaitedSince(call, other, versionRead) && comesBefore(other, session);
    });
    const decidedMsAgo = facts.kubelets.now - facts.sessionCameAt(versionRead);
    if (position > ahead.length && position <= waiting.existing(call, decidedMsAgo).length) return;
    const names = ahead.map(({ metadata }) => metadata.name).join(', ');
    facts.fail('in turn', `session ${name} is told position ${position}; before it come ${names || 'none'}`);
  };

  /**
   * Session → the present leader's last acknowledged write of its position: virtual milliseconds, and the wall clock's
   * skew.
   */
  let written = new Map<string, { at: number; skewMs: number }>();
  const unanswered = new Map<ControllerCall, { uid: string; skewMs: number }>();
  const writes = (change: Change) => {
    const queueOf = (one: Change['previous']) => (one as unknown as StoredSession | undefined)?.status?.queue;
    const [was, is] = [queueOf(change.previous), queueOf(change.object)];
    if (was?.position === is?.position) return;
    const { uid = '', name } = change.object.metadata;
    const { at, skewMs } = written.get(uid) ?? { at: Number.NEGATIVE_INFINITY, skewMs: 0 };
    const call = facts.callBehind(change);
    // A leader whose lease was deleted may write on for a moment. Its writes do not count.
    if (call?.process !== leader) return;
    // A session that leaves the queue gets no position.
    if (call && is) unanswered.set(call, { uid, skewMs: server.clock.skewMs });
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
      if (call.verb === 'replace' && call.resource === 'sessions' && call.process === leader) {
        if (!session) admitsGone(call);
        else if (pod) admits(call, session, pod);
        else positions(call, session);
      }
      waiting.sent(call);
    },
    answered(call, error) {
      waiting.answered(call, error);
      const slot = underWay.get(call);
      underWay.delete(call);
      if (slot && isRefused(error)) served.refuse(call.namespace ?? '', slot.pod);
      const write = unanswered.get(call);
      unanswered.delete(call);
      // The clock may jump between the write and its answer.
      if (write && !error) written.set(write.uid, { at: facts.kubelets.now, skewMs: write.skewMs });
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
