import { nodes, pods } from '../../../core/kube/resources.ts';
import { parseDuration } from '../../../core/resources/duration.ts';
import { type StoredSession, type StoredTurn, sessionclasses, sessions, turns } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { Activity } from './activity.ts';
import { ClientActivity } from './client-activity.ts';
import { CLOCK_MS } from './clocks.ts';
import { CLASSES, type Facts, ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { LastWord } from './last-word.ts';
import { LiveReads, ofSuspension } from './live-reads.ts';
import { Pasts } from './past.ts';
import { suspendedBy } from './suspended.ts';

/** Time after its last activity in which a session is not preempted; see controller/observed/activity.ts. */
const JUST_ACTIVE_MS = 10_000;
/** Interval at which preemption is planned; see controller/capacity/plan.ts. */
const PLAN_MS = 1000;
/** Age at which a session that takes one turn, and has none, loses its pod; see controller/decide/missing-turn.ts. */
const TURNLESS_MS = 60_000;
/** Kinds whose caches a controller decides by. */
const CACHES = ['sessions', 'turns', 'pods', 'sessionclasses'];

/** Facts for and against giving up a pod unasked, with their values at any time. */
class Reasons {
  /** Session → whether it wanted a slot, and whether it had one and was idle. */
  readonly wants = new Pasts<boolean>();
  readonly rests = new Pasts<boolean>();
  /** Session → whether it had a turn that had not ended. */
  readonly works = new Pasts<boolean>();
  readonly idleMs = new Pasts<number>();
  /** Class → the number of idle sessions that keep their pods, and the time for which asking ones keep theirs. */
  readonly minIdle = new Pasts<number>();
  readonly windowMs = new Pasts<number>();
  /** Node → whether it is cordoned. */
  readonly cordoned = new Pasts<boolean>();
  readonly classOf = new Map<string, string>();
  readonly #seenClasses = new Set<string>();
  readonly #facts: Facts;

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  changed(storage: string): void {
    const { server, kubelets } = this.#facts;
    const { now } = kubelets;
    if (storage === 'nodes') {
      for (const { metadata, spec } of server.list(nodes))
        this.cordoned.becomes(metadata.name, spec?.unschedulable === true, now);
    }
    if (storage === CLASSES) this.#classes(now);
    if (storage === SESSIONS || storage === TURNS || storage === 'pods') this.#sessions(now);
  }

  #classes(now: number): void {
    const classes = this.#facts.server.list(sessionclasses);
    const specs = new Map(classes.map(({ metadata, spec }) => [metadata.name, spec]));
    for (const name of specs.keys()) this.#seenClasses.add(name);
    // Sessions of a class that was deleted are judged by what holds without one.
    for (const name of this.#seenClasses) {
      this.minIdle.becomes(name, specs.get(name)?.minIdle ?? 0, now);
      this.windowMs.becomes(name, parseDuration(specs.get(name)?.approvalWindow ?? '1h'), now);
    }
  }

  #sessions(now: number): void {
    const { server } = this.#facts;
    const working = new Set(
      server
        .list(turns)
        .filter(({ status }) => !isTerminal(status?.phase))
        .map(ownerOf),
    );
    const gone = new Set(this.classOf.keys());
    for (const session of server.list(sessions)) {
      const { metadata, spec } = session;
      gone.delete(metadata.uid);
      this.classOf.set(metadata.uid, spec.class);
      this.wants.becomes(metadata.uid, wants(session, working.has(metadata.uid)), now);
      this.works.becomes(metadata.uid, working.has(metadata.uid), now);
      this.rests.becomes(metadata.uid, !working.has(metadata.uid) && this.#hasSlot(session), now);
      this.idleMs.becomes(metadata.uid, parseDuration(spec.timeouts?.idle ?? '2h'), now);
    }
    for (const uid of gone) {
      this.wants.becomes(uid, false, now);
      this.rests.becomes(uid, false, now);
    }
  }

  #hasSlot({ metadata, spec, status }: StoredSession): boolean {
    const pod = status?.podName ? this.#facts.server.get(pods, metadata.namespace, status.podName) : undefined;
    if (!pod || pod.metadata.deletionTimestamp || status?.phase === 'Finished') return false;
    const isReady = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True');
    return spec.persistence?.state !== false && (isReady === true || status?.phase === 'Suspending');
  }
}

function wants({ spec, status }: StoredSession, works: boolean): boolean {
  if (status?.podName || status?.phase === 'Finished') return false;
  return status?.queue !== undefined || (!spec.suspend && (works || !status?.incarnation));
}

/**
 * A session's pod is given up unasked in five cases: its runner is not understood, the session takes one turn and none has come for
 * a minute, it was idle for its timeout, its node is cordoned, or another session waits for the slot (preemption). A session that
 * keeps no state loses its pod unasked only for want of its one turn.
 * Preemption spares sessions that were just active, sessions that have waited for a decision for less than their
 * class's window, and the idle sessions that their class keeps. A controller decides by what it was shown: changes that
 * it was not shown, changes since its last plan, and activity after its last question about activity are not held
 * against it. What clients do in the pod keeps its session from being idle, and from nothing else.
 */
export const preempted: MakeInvariant = (facts) => {
  const reads = new LiveReads(facts, ofSuspension);
  const lastWord = new LastWord();
  const activity = new Activity(facts);
  const ofClients = new ClientActivity(facts);
  const reasons = new Reasons(facts);
  const asksSince = new Map<string, number>();
  const { server, kubelets } = facts;

  /** Reports whether the session takes one turn, and none had come by a virtual time, a minute after its creation. */
  const lacksItsTurn = ({ metadata, spec, status }: StoredSession, known: number): boolean => {
    if (spec.turns !== 'One' || spec.input !== undefined || status?.lastTurn) return false;
    const hadOne = [...reasons.works.since(metadata.uid, known)].every(Boolean);
    const age = server.clock.now() - Date.parse(metadata.creationTimestamp) + CLOCK_MS;
    return !hadOne && age >= TURNLESS_MS;
  };

  /** Returns the reason why the pod must not be given up; undefined when there is none. */
  const problem = (
    session: StoredSession,
    asking: StoredTurn | undefined,
    rested: number,
    planned: number,
  ): string | undefined => {
    const { uid } = session.metadata;
    const sessionClass = session.spec.class;
    const works = facts.turnsOf(uid).some(({ status }) => !isTerminal(status?.phase));
    const somebodyWaits = [...reasons.wants.everBeen(true, planned)].some((one) => one !== uid);
    if (asking) {
      const asked = server.clock.now() - (asksSince.get(asking.metadata.uid) ?? 0) + CLOCK_MS;
      if (!somebodyWaits) return `turn ${asking.metadata.name} asks, and nobody waits for a place`;
      const window = Math.min(...reasons.windowMs.since(sessionClass, planned));
      return asked < window ? `turn ${asking.metadata.name} has asked for ${asked} ms` : undefined;
    }
    if (rested < JUST_ACTIVE_MS) return `it was active ${rested} ms ago`;
    if (!somebodyWaits) return `it has rested for ${rested} ms, and nobody waits for a place`;
    // The class keeps idle sessions, not those whose turn waits for its group.
    if (works) return undefined;
    const idle = [...reasons.rests.everBeen(true, planned)].filter((one) => reasons.classOf.get(one) === sessionClass);
    const others = idle.filter((one) => one !== uid).length;
    const kept = Math.min(...reasons.minIdle.since(sessionClass, planned));
    return others < kept ? `its class keeps ${kept} idle sessions, and there are ${others} beside it` : undefined;
  };

  return {
    committed(change) {
      activity.committed(change);
      reasons.changed(change.storage);
      const { object, previous } = change;
      const phaseOf = (one: typeof previous) => (one?.status as { phase?: string } | undefined)?.phase;
      if (phaseOf(object) === 'AwaitingApproval' && phaseOf(previous) !== 'AwaitingApproval')
        asksSince.set(object.metadata.uid ?? '', server.clock.now());
    },
    runStarted: activity.runStarted,
    runEnded: activity.runEnded,
    touched: activity.touched,
    clientsWorked: ofClients.clientsWorked,
    heard(container, word) {
      lastWord.heard(container, word);
      ofClients.heard(container, word);
    },
    called(call) {
      reads.called(call);
      const { session, pod } = suspendedBy(call, facts) ?? {};
      // A pod that was never bound has run no turn.
      const container = kubelets.container(pod?.metadata.uid ?? '');
      if (!session || !pod || !container?.bind) return;
      const read = reads.of(call.process, session);
      const { suspend, suspendRequest } = session.spec;
      if (read?.wished || suspend || suspendRequest || facts.isToRestart(session)) return;
      const fail = (why: string) =>
        facts.fail('preempted', `${call.name} is given up unasked by ${call.process} although ${why}`);
      const { uid } = session.metadata;
      const known = facts.knewUntil(call, CACHES);
      if (lacksItsTurn(session, known)) return;
      if (session.spec.persistence?.state === false) return fail('it keeps no state');
      if (facts.isOutdated(call.process, pod.metadata.uid)) return;
      const asking = facts.turnsOf(uid).find(({ status }) => status?.phase === 'AwaitingApproval');
      const idleMs = Math.min(...reasons.idleMs.since(uid, known));
      const until = lastWord.of(call, container, read, known);
      const rested = activity.restedMs(uid, until, call.process) + CLOCK_MS;
      const left = ofClients.restedMs(container.podUID, until.runner) + CLOCK_MS;
      if (!asking && Math.min(rested, left) >= idleMs) return;
      const moves = reasons.cordoned.since(pod.spec.nodeName ?? '', facts.knewUntil(call, ['nodes'])).includes(true);
      if (!asking && moves) return;
      const why = problem(session, asking, rested, facts.knewUntil(call, CACHES, PLAN_MS));
      if (why) fail(left < rested ? `${why}, and a client worked in it ${left} ms ago` : why);
    },
  };
};
