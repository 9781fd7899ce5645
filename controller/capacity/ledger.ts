import type { StoredPod } from '../../core/kube/builtin.ts';
import { keyOf, refOf } from '../../core/kube/cache.ts';
import { isConflict, isRefusal } from '../../core/kube/errors.ts';
import { LABEL_CLASS, LABEL_SESSION_UID } from '../../core/resources/names.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import type { Watches } from '../caches/watches.ts';
import type { Applicant } from '../observed/capacity-view.ts';
import { isFromPool, isUnclaimed, sessionNameOf } from '../observed/session-pods.ts';
import type { CachedSession, Slot } from '../observed/world.ts';
import { WRITE_DEADLINE_MS } from '../runtime/leased-api.ts';
import { applicantOf } from './applicant.ts';
import { Groups } from './groups.ts';
import { countsFor, fullOf, type Limit, limitsOf, takenOf } from './limits.ts';
import { membershipOf } from './membership.ts';
import { COMES_LATER, firstOf, fullMessage, namespaceUnreadable, notKnown } from './messages.ts';
import { PreemptionPlan } from './plan.ts';
import { Queue } from './queue.ts';
import { type Holder, SlotUsage } from './slot-usage.ts';
import { type Space, Tally } from './tally.ts';

/** Part of the caches that the ledger reads. */
export type Seen = Pick<
  Caches,
  'session' | 'pod' | 'class' | 'turnsNaming' | 'allSessions' | 'allPods' | 'namespaceLabels' | 'staleness' | 'closed'
>;

export interface LedgerOptions {
  caches: Seen;
  clock: Clock;
  /** Absent: no limit. */
  maxRunning: number | undefined;
  /** Time from which a failed suspension of the session may be retried, milliseconds since the epoch. */
  suspendAgainAt(key: string): number | undefined;
  /** Number of the present leadership. */
  epoch(): number;
  /** A session that may have something to do by now. */
  onChange(key: string): void;
  /** Called when a pod of a pool is to be given up for a session that waits, or no longer is, and when it can be claimed again. */
  onPoolPod?(pod: StoredPod): void;
  /** Called when slots may have become free for pools. */
  onVacancy?(): void;
}

/** A cache that has not heard from the API server for longer is not believed. A watch is silent for two minutes at most. */
const STALE_MS = 180_000;
const AGAIN_MS = 1_000;
/** Time after which sessions are offered slots again that could not be while something was unknown: no event tells of the end of that. */
const UNKNOWN_MS = 2_000;

/** Room for one more pod of a pool, or why there is none. */
export type Room =
  | { free: true }
  /** `unknown`: the leader may not take slots yet, or cannot know. `waited`: sessions wait that need the slots. */
  | { free: false; why: 'Unknown' | 'Waited' | 'Full'; message: string };

/** Sessions of the queue for which there is a slot. */
interface Served {
  keys: Set<string>;
  /** True if others are served as soon as these have their slots. */
  othersFollow: boolean;
  /** True if the limits of a session in the queue were not known. */
  isUncertain: boolean;
}

/**
 * Decides which sessions may have a pod. Counts the slots that the caches show and those that this leader has reserved
 * since; unknown means full. A slot is reserved and counted in one step, so two sessions never get the same one. The
 * caches tell of every change as it happens, and the counts follow.
 */
export class Ledger {
  /** The concurrency groups, counted in the same way. */
  readonly groups: Groups;
  readonly #options: LedgerOptions;
  readonly #slotUsage: SlotUsage;
  readonly #queue = new Queue();
  readonly #plan: PreemptionPlan;
  /** Pods whose creation may still take effect, by `namespace/name`, with the cancel function of the timer that waits. */
  readonly #unconfirmedPods = new Map<string, () => void>();
  /** Sessions whose turn may still be written as running, with the cancel function of the timer that waits. */
  readonly #unconfirmedTurns = new Map<string, () => void>();
  /** Pods of pools that no session has claimed and that are not terminating, by `namespace/name`. */
  readonly #unclaimed = new Map<string, StoredPod>();
  #open = false;
  /** Sessions of the queue for which there is a slot now; found anew after every change, and in a while where limits were unknown. */
  #served: Served | undefined;
  /** Cancels the next look at what was unknown. */
  #cancelLook: (() => void) | undefined;

  constructor(options: LedgerOptions) {
    const { caches, clock, onChange, epoch } = options;
    this.#options = options;
    this.#slotUsage = new SlotUsage(
      () => this.vacancy(),
      (pod) => this.#released(pod),
    );
    this.groups = new Groups(onChange, epoch);
    this.#plan = new PreemptionPlan({
      caches,
      clock,
      queue: this.#queue,
      slotUsage: this.#slotUsage,
      limits: (space) => this.#limits(space),
      suspendAgainAt: options.suspendAgainAt,
      spare: () => this.#spare(),
      onChange,
      onYield: (pod) => options.onPoolPod?.(pod),
    });
    for (const pod of caches.allPods()) this.podChanged(pod, false);
    for (const session of caches.allSessions()) this.#sawSession(session);
  }

  get watches(): Watches {
    return {
      pod: (pod, gone) => this.podChanged(pod, gone),
      session: (key) => this.sessionChanged(key),
      class: () => this.limitsChanged(),
      namespaces: () => this.limitsChanged(),
    };
  }

  /** Slots in use. */
  get tally(): Tally {
    return this.#slotUsage.tally;
  }

  /** Begins to admit sessions. After a lease was taken over, the last request of its old holder must be dead first. */
  open(): void {
    this.#open = true;
    // The queue comes first: sessions that are served are reconciled, and take their slots, in its order.
    this.vacancy();
    this.groups.open();
  }

  close(): void {
    this.#open = false;
    this.groups.close();
    this.#plan.stop();
    this.#cancelLook?.();
    for (const cancel of [...this.#unconfirmedPods.values(), ...this.#unconfirmedTurns.values()]) cancel();
  }

  /** The session of that name, or a turn that names it, is not as it was in the caches. */
  sessionChanged(key: string): void {
    const { namespace, name } = refOf(key);
    const session = this.#options.caches.session(namespace, name);
    this.#changes(() => this.#slotUsage.session(key, session && admitted(session)));
    this.groups.update(key, membershipOf(key, session, this.#options.caches));
    if (!session) this.leave(key);
  }

  podChanged(pod: StoredPod, gone: boolean): void {
    const key = keyOf(pod.metadata);
    const isNew = !this.#unclaimed.has(key);
    if (!gone && isUnclaimed(pod) && !pod.metadata.deletionTimestamp) this.#unclaimed.set(key, pod);
    else this.#unclaimed.delete(key);
    if (gone) this.#slotUsage.podGone(key);
    else this.#changes(() => this.#slotUsage.pod(key, this.#podHolder(pod)));
    if (isNew && this.#unclaimed.has(key)) this.#offer();
  }

  /** Applies a change. A slot taken without a reservation may have been meant for a session of the queue. */
  #changes(change: () => void): void {
    const before = this.#slotUsage.tally.total;
    change();
    if (this.#slotUsage.tally.total > before) this.#served = undefined;
  }

  /** A class, or the labels of a namespace, are not as they were. */
  limitsChanged(): void {
    this.vacancy();
  }

  /** Reports whether the session would get a slot for the pod now, in the queue or not. Changes nothing. */
  assess(applicant: Applicant, pod: string): Slot {
    if (this.#slotUsage.isReserved(keyOf({ namespace: applicant.namespace, name: pod }))) return 'Available';
    if (!this.#knows()) {
      const message = notKnown('Whether a running slot is free', this.#options.epoch());
      return this.#waits(applicant, 'CapacityUnknown', message);
    }
    const limits = this.#limits(applicant);
    if (typeof limits === 'string') return this.#waits(applicant, 'CapacityUnknown', limits);
    const full = fullOf(limits, applicant, this.#slotUsage.tally).at(-1);
    if (full && !this.#claimableBy(applicant)) {
      const { class: ofClass, namespace } = applicant;
      const scopes = { Installation: {}, Class: { class: ofClass }, Namespace: { class: ofClass, namespace } };
      const holders = firstOf(this.#slotUsage.holders(scopes[full.scope]));
      const taken = takenOf(full, applicant, this.#slotUsage.tally);
      return this.#waits(applicant, 'AtCapacity', fullMessage(full, applicant, taken, holders), holders);
    }
    const isServed = this.#servedWith(applicant)?.keys.has(applicant.key) ?? true;
    return isServed ? 'Available' : this.#waits(applicant, 'AtCapacity', COMES_LATER);
  }

  /**
   * Updates the queue after the decision: the session waits, is about to take the slot that `assess` found for it, or wants
   * none. There must be no await between `assess` and this call.
   */
  commitQueue(applicant: Applicant, wants: 'Slot' | 'Nothing' | 'OwnIncarnation'): void {
    if (wants === 'Nothing') this.leave(applicant.key);
    else if (wants === 'Slot' || this.#queue.has(applicant.key)) this.wait(applicant);
  }

  /**
   * Takes a slot for the pod if one is free; it stays taken until `settle`. A pod of a pool has its slot already, which goes
   * to the first session that reserves it.
   */
  reserve(applicant: Applicant, pod: string): boolean {
    const { key, namespace } = applicant;
    const isClaim = isFromPool(pod);
    if (isClaim && !this.isSpare(namespace, pod)) {
      // Another session has reserved the pod since the decision. There may be another pod, or a slot.
      this.#options.onChange(key);
      return false;
    }
    if (!isClaim && this.#slotUsage.isReserved(keyOf({ namespace, name: pod }))) return true;
    if (this.assess(applicant, pod) !== 'Available') return false;
    const served = this.#servedWith(applicant);
    // Sessions for which there was a slot beside this one still have theirs, as far as they were found beside it.
    if (this.#queue.leave(key)) this.#served?.keys.delete(key);
    else this.#served = undefined;
    this.hold(applicant, pod);
    this.#queue.served(namespace, this.#options.clock.now(), keyOf({ namespace, name: pod }));
    if (served?.othersFollow) this.vacancy();
    return true;
  }

  /** Reports whether the pod of a pool can be claimed, as far as slots are concerned, or given up. */
  isSpare(namespace: string, pod: string): boolean {
    const key = keyOf({ namespace, name: pod });
    return this.#unclaimed.has(key) && !this.#slotUsage.isTaken(key) && !this.#slotUsage.isReserved(key);
  }

  /** Reports whether a session has the pod of a pool, or is about to claim it. */
  isTaken(namespace: string, pod: string): boolean {
    return this.#slotUsage.isTaken(keyOf({ namespace, name: pod }));
  }

  /** Reports whether the pod of a pool is to be given up for a session that waits. */
  yields(namespace: string, pod: string): boolean {
    return this.#plan.yields(namespace, pod);
  }

  /**
   * Room for one more pod of a pool. A pool takes no slot that a session waits for, neither one of the installation's slots nor
   * one of the class.
   */
  room(space: Space & { class: string }): Room {
    if (!this.#knows()) {
      return {
        free: false,
        why: 'Unknown',
        message: notKnown('Whether a running slot is free', this.#options.epoch()),
      };
    }
    const limits = this.#limits(space);
    if (typeof limits === 'string') return { free: false, why: 'Unknown', message: limits };
    const full = fullOf(limits, space, this.#slotUsage.tally).at(-1);
    if (full) {
      const taken = takenOf(full, space, this.#slotUsage.tally);
      return { free: false, why: 'Full', message: fullMessage(full, space, taken, []) };
    }
    let waits: string | undefined;
    this.#queue.walk((applicant) => {
      const theirs = this.#limits(applicant);
      if (typeof theirs === 'string') return false;
      // A session that a limit of its own holds back could not use the slot.
      const full = fullOf(theirs, applicant, this.#slotUsage.tally);
      const isHeldBack = full.some((limit) => !countsFor(limit, applicant, space));
      if (!isHeldBack && limits.some((limit) => countsFor(limit, space, applicant))) waits ??= applicant.key;
      return false;
    });
    if (waits !== undefined) return { free: false, why: 'Waited', message: `Session ${waits} waits for a slot.` };
    return { free: true };
  }

  /** The lowest number of slots that pods of this class in this namespace can have; undefined: no limit, or unknown. */
  most(space: Space & { class: string }): number | undefined {
    const limits = this.#limits(space);
    if (typeof limits === 'string' || limits.length === 0) return undefined;
    return Math.min(...limits.map(({ slots }) => slots));
  }

  /**
   * Takes a slot for a new pod of a pool, in the pod's own name, if there is room; it stays taken until `settle`, and the pod is
   * neither claimed nor given up before.
   */
  reserveForPool(space: Space & { class: string }, pod: string): boolean {
    if (!this.room(space).free) return false;
    this.hold({ key: keyOf({ namespace: space.namespace, name: pod }), ...space }, pod);
    return true;
  }

  /** Requeues the sessions of the queue that could claim a pod which can be claimed from now on. */
  warmed({ namespace, class: ofClass }: Space): void {
    for (const key of this.#queue.keys()) {
      const { namespace: theirs, name } = refOf(key);
      const session = theirs === namespace ? this.#options.caches.session(namespace, name) : undefined;
      if (session?.spec.class === ofClass) this.#options.onChange(key);
    }
  }

  /** A pod of a pool that nobody claims any more can be claimed or given up. */
  #released(pod: string): void {
    const unclaimed = this.#unclaimed.get(pod);
    if (!unclaimed || !this.isSpare(unclaimed.metadata.namespace, unclaimed.metadata.name)) return;
    this.#options.onPoolPod?.(unclaimed);
    this.#offer();
  }

  #spare(): StoredPod[] {
    return [...this.#unclaimed.values()].filter(({ metadata }) => this.isSpare(metadata.namespace, metadata.name));
  }

  /** The first pod that the session can claim. */
  #claimableBy({ namespace, warm = [] }: Applicant): string | undefined {
    return warm.find((pod) => this.isSpare(namespace, pod));
  }

  /** The pod is about to be made for the session: it counts until `settle`, whatever becomes of its session meanwhile. */
  hold({ key, namespace, class: ofClass }: Omit<Applicant, 'priority' | 'since'>, pod: string): void {
    const since = this.#options.clock.now();
    this.#slotUsage.reserve(keyOf({ namespace, name: pod }), { name: key, namespace, class: ofClass, since });
  }

  /**
   * Reserves a slot for `ms` milliseconds for a pod that a late write of the earlier leader may still give the session,
   * beside the slot of the pod that this leader gives it.
   */
  reserveForLateWrite(key: string, ms: number): void {
    const { namespace, name } = refOf(key);
    const session = this.#options.caches.session(namespace, name);
    if (!session || session.status?.podName) return;
    const late = `late pod of ${name}`;
    this.hold(applicantOf(session, []), late);
    const cancel = this.#options.clock.setTimer(ms, () => this.confirm(namespace, late));
    this.#unconfirmedPods.set(keyOf({ namespace, name: late }), cancel);
  }

  /** Reports whether the pod has a slot: it exists, has one reserved, or belongs to a session that was admitted with it. */
  hasSlot(namespace: string, pod: string): boolean {
    return this.#slotUsage.holder(keyOf({ namespace, name: pod })) !== undefined;
  }

  /**
   * The API server refused to admit the session with the pod: its namespace keeps its turn in the queue, unless an earlier
   * request of the same may have taken effect.
   */
  refused(namespace: string, pod: string): void {
    if (!this.isUnconfirmed(namespace, pod)) this.#queue.refused(keyOf({ namespace, name: pod }));
  }

  /** Ends a reservation: the caches show the pod by now, or it can no longer be created. */
  confirm(namespace: string, pod: string): void {
    const key = keyOf({ namespace, name: pod });
    this.#queue.confirmed(key);
    this.#unconfirmedPods.get(key)?.();
    this.#unconfirmedPods.delete(key);
    this.#slotUsage.confirm(key);
  }

  /**
   * Ends the reservation after a request for the pod has failed, or keeps it as long as the request may take effect. A refusal does
   * not, if nothing is under way from an earlier request.
   */
  failed(namespace: string, pod: string, error: unknown): void {
    if (isRefusal(error) && !isConflict(error) && !this.isUnconfirmed(namespace, pod)) this.confirm(namespace, pod);
    else this.confirmLater(namespace, pod);
  }

  /** Keeps the slot taken until it is known whether the last request for the pod took effect. */
  confirmLater(namespace: string, pod: string): void {
    const key = keyOf({ namespace, name: pod });
    this.#unconfirmedPods.get(key)?.();
    this.#unconfirmedPods.set(
      key,
      this.#whenKnown(namespace, () => this.confirm(namespace, pod)),
    );
  }

  /** Reports whether an earlier request for the pod may still take effect. */
  isUnconfirmed(namespace: string, pod: string): boolean {
    return this.#unconfirmedPods.has(keyOf({ namespace, name: pod }));
  }

  /** Counts the session's turn in its group until it is known whether it was written as running. */
  confirmTurnLater(session: string): void {
    this.groups.pin(session);
    this.#unconfirmedTurns.get(session)?.();
    this.#unconfirmedTurns.set(
      session,
      this.#whenKnown(refOf(session).namespace, () => this.confirmTurn(session)),
    );
  }

  /** Counts the session's turn as the caches show it from now on. */
  confirmTurn(session: string): void {
    this.#unconfirmedTurns.get(session)?.();
    if (!this.#unconfirmedTurns.delete(session)) return;
    this.groups.unpin(session);
    this.#options.onChange(session);
  }

  /** Calls `fn` once a request of this moment must be dead and the caches have heard from the API server since. */
  #whenKnown(namespace: string | undefined, fn: () => void): () => void {
    const { clock, caches } = this.#options;
    const deadAt = clock.monotonic() + WRITE_DEADLINE_MS;
    const look = () => {
      if (clock.monotonic() - caches.staleness(namespace) > deadAt) fn();
      else cancel = clock.setTimer(AGAIN_MS, look);
    };
    let cancel = clock.setTimer(WRITE_DEADLINE_MS, look);
    return () => cancel();
  }

  /** Has the session wait for a slot. */
  wait(applicant: Applicant): void {
    if (this.#queue.join(applicant)) this.vacancy();
  }

  /** The session waits no longer. */
  leave(key: string): void {
    if (this.#queue.leave(key)) this.vacancy();
  }

  /** `namespace/name` of the sessions in the queue. */
  waiting(): Iterable<string> {
    return this.#queue.keys();
  }

  /** Session for which this one is preempted, if it is. */
  preemptFor(key: string): { for: string } | undefined {
    return this.#plan.preemptFor(key);
  }

  /** Requeues the sessions that are served next; called when a slot may have become free. */
  vacancy(): void {
    if (this.#open) this.#options.onVacancy?.();
    this.#offer();
  }

  /** Finds anew which sessions of the queue are served, and requeues them. */
  #offer(): void {
    this.#served = undefined;
    if (this.#queue.size === 0 || !this.#open) return;
    if (!this.#knows()) {
      this.#lookAgain();
      return;
    }
    for (const key of this.#findServed().keys) this.#options.onChange(key);
    this.#plan.soon();
  }

  /** Offers the slots again in a while: something was unknown. */
  #lookAgain(): void {
    this.#cancelLook ??= this.#options.clock.setTimer(UNKNOWN_MS, () => {
      this.#cancelLook = undefined;
      this.#offer();
    });
  }

  #knows(): boolean {
    return this.#open && this.#options.caches.staleness() <= STALE_MS;
  }

  #limits(space: Space): Limit[] | string {
    const { caches, maxRunning } = this.#options;
    const closed = caches.closed(space.namespace);
    if (closed) return namespaceUnreadable(space.namespace, closed);
    const sources = {
      maxRunning,
      class: (name: string) => caches.class(name),
      labels: (namespace: string) => caches.namespaceLabels(namespace),
    };
    return limitsOf(sources, space);
  }

  /** Sessions that are served if the applicant is in the queue; undefined: the queue would have no other. */
  #servedWith(applicant: Applicant): Served | undefined {
    if (this.#queue.stands(applicant)) return this.#findServed();
    return this.#queue.size === 0 ? undefined : this.#queue.preview(applicant, () => this.#serve());
  }

  #findServed(): Served {
    this.#served ??= this.#serve();
    if (this.#served.isUncertain) this.#lookAgain();
    return this.#served;
  }

  /**
   * Goes through the queue in its order. A session is passed over where those before it take the slots that it needs. Until
   * these sessions have their slots, no other session of their namespaces is served. Otherwise a later session of the same
   * namespace could take its slot first, and the next slot would go to the session that was passed over.
   */
  #serve(): Served {
    const found: Served = { keys: new Set(), othersFollow: false, isUncertain: false };
    const [serving, passedOver] = [new Set<string>(), new Set<string>()];
    const { maxRunning = Number.POSITIVE_INFINITY } = this.#options;
    let spare = this.#spare();
    if (this.#slotUsage.tally.total >= maxRunning && spare.length === 0) return found;
    const tally = Tally.copy(this.#slotUsage.tally);
    this.#queue.walk((applicant) => {
      const { key, namespace } = applicant;
      const limits = this.#limits(applicant);
      if (typeof limits === 'string') {
        found.isUncertain = true;
        return false;
      }
      const full = fullOf(limits, applicant, tally);
      if (full.length > 0) {
        const claims = spare.find(({ metadata }) => {
          return metadata.namespace === namespace && applicant.warm?.includes(metadata.name);
        });
        spare = spare.filter((pod) => pod !== claims);
        if (claims) {
          serving.add(namespace);
          found.keys.add(key);
          return true;
        }
        // Pods whose slots would help this session are given up for it, and are claimed by nobody behind it.
        spare = spare.filter((pod) => !full.some((limit) => countsFor(limit, applicant, spaceOfPod(pod))));
        if (fullOf(limits, applicant, this.#slotUsage.tally).length === 0) passedOver.add(namespace);
        return false;
      }
      if (serving.has(namespace) && passedOver.size > (passedOver.has(namespace) ? 1 : 0)) {
        found.othersFollow = true;
        return false;
      }
      tally.add(applicant);
      serving.add(namespace);
      found.keys.add(key);
      return true;
    });
    return found;
  }

  #waits(
    applicant: Applicant,
    waiting: 'AtCapacity' | 'CapacityUnknown',
    message: string,
    holders?: { name: string; since: string }[],
  ): Slot {
    return { waiting, message, position: this.#queue.position(applicant), ...(holders ? { holders } : {}) };
  }

  #sawSession(session: CachedSession): void {
    const key = keyOf(session.metadata);
    this.sessionChanged(key);
    const { queue, podName, conditions } = session.status ?? {};
    const condition = conditions?.find(({ type }) => type === 'Admitted');
    if (condition?.status === 'True') {
      this.#queue.wasServed(session.metadata.namespace, Date.parse(condition.lastTransitionTime));
    }
    // Sessions that were queued under the leader before are in the queue from the start.
    const waited = queue && (queue.reason === 'AtCapacity' || queue.reason === 'CapacityUnknown');
    if (waited && !podName) this.#queue.join(applicantOf(session, []));
  }

  #podHolder(pod: StoredPod): Holder {
    const { metadata } = pod;
    const { name, namespace, labels = {}, creationTimestamp } = metadata;
    const session = this.#options.caches.session(namespace, sessionNameOf(pod));
    const known = session?.metadata.uid === labels[LABEL_SESSION_UID] ? session : undefined;
    return {
      name: `${namespace}/${known ? known.metadata.name : `pod ${name}`}`,
      namespace,
      // A class's name may be too long for a label.
      class: known?.spec.class ?? labels[LABEL_CLASS],
      since: Date.parse(creationTimestamp),
    };
  }
}

function spaceOfPod({ metadata: { namespace, labels } }: StoredPod): Space {
  return { namespace, class: labels?.[LABEL_CLASS] };
}

/** A session counts from its admission on, whether its pod is to be seen or not. */
function admitted({ metadata, spec, status }: CachedSession): { pod: string; holder: Holder } | undefined {
  if (!status?.podName) return undefined;
  const namespace = metadata.namespace;
  const condition = status.conditions?.find(({ type, status }) => type === 'Admitted' && status === 'True');
  const since = Date.parse(condition?.lastTransitionTime ?? metadata.creationTimestamp);
  const holder = { name: `${namespace}/${metadata.name}`, namespace, class: spec.class, since };
  return { pod: keyOf({ namespace, name: status.podName }), holder };
}
