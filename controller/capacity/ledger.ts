import type { StoredPod } from '../../core/kube/builtin.ts';
import { keyOf, refOf } from '../../core/kube/cache.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import type { Watches } from '../caches/watches.ts';
import type { Applicant } from '../observed/capacity-view.ts';
import { isFromPool } from '../observed/session-pods.ts';
import type { CachedSession, Slot } from '../observed/world.ts';
import { applicantOf } from './applicant.ts';
import { Groups } from './groups.ts';
import { admitted, holderOf } from './holders.ts';
import { fullOf, type Limit, limitsOf, takenOf } from './limits.ts';
import { membershipOf } from './membership.ts';
import { COMES_LATER, firstOf, fullMessage, namespaceUnreadable, notKnown } from './messages.ts';
import { Offers } from './offers.ts';
import { PreemptionPlan } from './plan.ts';
import { poolRoom, type Room } from './pool-room.ts';
import { Queue } from './queue.ts';
import { Reservations } from './reservations.ts';
import { SlotUsage } from './slot-usage.ts';
import type { Space, Tally } from './tally.ts';
import { UnclaimedPods } from './unclaimed-pods.ts';
import { Unconfirmed } from './unconfirmed.ts';

/** Part of the caches that the ledger reads. */
export type Seen = Pick<
  Caches,
  'session' | 'pod' | 'class' | 'turnsNaming' | 'allSessions' | 'allPods' | 'namespaceLabels' | 'staleness' | 'closed'
>;

export interface LedgerOptions {
  caches: Seen;
  clock: Clock;
  /** Default: no limit. */
  maxRunning: number | undefined;
  /** Time from which a failed suspension of the session may be retried, milliseconds since the epoch. */
  suspendAgainAt(key: string): number | undefined;
  /** Number of the present leadership. */
  epoch(): number;
  /** Handler of a session that may have something to do. */
  onChange(key: string): void;
  /** Handler of a pod of a pool that is to be given up for a session that waits, or no longer is, or can be claimed again. */
  onPoolPod?(pod: StoredPod): void;
  /** Handler of slots that may have become free for pools. */
  onVacancy?(): void;
}

/** A cache that has not heard from the API server for longer is not believed. A watch is silent for two minutes at most. */
const STALE_MS = 180_000;
/**
 * Decides which sessions may have a pod. Counts the slots that the caches show and those that this leader has reserved
 * since; unknown means full. A slot is reserved and counted in one step, so two sessions never get the same one. The
 * caches report every change as it happens, and the counts follow.
 */
export class Ledger {
  /** The concurrency groups, counted in the same way. */
  readonly groups: Groups;
  readonly reservations: Reservations;
  readonly #options: LedgerOptions;
  readonly #slotUsage: SlotUsage;
  readonly #queue = new Queue();
  readonly #plan: PreemptionPlan;
  readonly #unclaimed: UnclaimedPods;
  readonly #offers: Offers;
  #open = false;

  constructor(options: LedgerOptions) {
    const { caches, clock, onChange, epoch } = options;
    this.#options = options;
    this.#slotUsage = new SlotUsage(
      () => this.vacancy(),
      (pod) => this.#released(pod),
    );
    this.#unclaimed = new UnclaimedPods(this.#slotUsage);
    this.reservations = new Reservations({ caches, clock, queue: this.#queue, slotUsage: this.#slotUsage });
    this.groups = new Groups(onChange, epoch, new Unconfirmed(clock, caches));
    this.#offers = new Offers({
      clock,
      queue: this.#queue,
      supply: () => ({
        tally: this.tally,
        maxRunning: options.maxRunning,
        limitsOf: (space) => this.#limits(space),
        available: this.#unclaimed.available(),
      }),
      state: () => (!this.#open ? 'Closed' : this.#knows() ? 'Open' : 'Unknown'),
      onOffer: onChange,
      onOffered: () => this.#plan.soon(),
    });
    this.#plan = new PreemptionPlan({
      caches,
      clock,
      queue: this.#queue,
      slotUsage: this.#slotUsage,
      limits: (space) => this.#limits(space),
      suspendAgainAt: options.suspendAgainAt,
      available: () => this.#unclaimed.available(),
      onChange,
      onGivenUp: (pod) => options.onPoolPod?.(pod),
    });
    for (const pod of caches.allPods()) this.podChanged(pod, false);
    for (const session of caches.allSessions()) this.#sawSession(session);
  }

  get watches(): Watches {
    return {
      pod: (pod, gone) => this.podChanged(pod, gone),
      session: (key) => this.sessionChanged(key),
      class: () => this.vacancy(),
      namespaces: () => this.vacancy(),
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
    this.#offers.close();
    this.reservations.close();
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
    const canBeClaimed = this.#unclaimed.update(pod, gone);
    if (gone) this.#slotUsage.podGone(key);
    else this.#changes(() => this.#slotUsage.pod(key, holderOf(pod, this.#options.caches)));
    if (canBeClaimed) this.#offers.renew();
  }

  /** Applies a change. A slot taken without a reservation may have been meant for a session of the queue. */
  #changes(change: () => void): void {
    const before = this.#slotUsage.tally.total;
    change();
    if (this.#slotUsage.tally.total > before) this.#offers.forget();
  }

  /** Reports whether the session would get a slot for the pod now, in the queue or not. Changes nothing. */
  assess(applicant: Applicant, pod: string): Slot {
    if (this.#slotUsage.isReserved(keyOf({ namespace: applicant.namespace, name: pod }))) return 'Available';
    const limits = this.#limitsIfKnown(applicant);
    if (typeof limits === 'string') return this.#waits(applicant, 'CapacityUnknown', limits);
    const full = fullOf(limits, applicant, this.#slotUsage.tally).at(-1);
    if (full && !this.#unclaimed.hasFor(applicant)) {
      const { class: ofClass, namespace } = applicant;
      const scopes = { Installation: {}, Class: { class: ofClass }, Namespace: { class: ofClass, namespace } };
      const holders = firstOf(this.#slotUsage.holders(scopes[full.scope]));
      const taken = takenOf(full, applicant, this.#slotUsage.tally);
      return this.#waits(applicant, 'AtCapacity', fullMessage(full, applicant, taken, holders), holders);
    }
    const isServed = this.#offers.with(applicant)?.keys.has(applicant.key) ?? true;
    return isServed ? 'Available' : this.#waits(applicant, 'AtCapacity', COMES_LATER);
  }

  /**
   * Updates the queue after the decision: the session waits, is about to take the slot that `assess` found for it, or wants
   * none. There must be no await between `assess` and this call.
   */
  commitQueue(applicant: Applicant, wants: 'Slot' | 'Nothing' | 'Admission'): void {
    if (wants === 'Nothing') this.leave(applicant.key);
    else if (wants === 'Slot' || this.#queue.has(applicant.key)) this.wait(applicant);
  }

  /**
   * Takes a slot for the pod if one is free; it stays taken until `confirm`. A pod of a pool has its slot already, which goes
   * to the first session that reserves it.
   */
  reserve(applicant: Applicant, pod: string): boolean {
    const { key, namespace } = applicant;
    const isClaim = isFromPool(pod);
    if (isClaim && !this.isAvailable(namespace, pod)) {
      // Another session has reserved the pod since the decision. There may be another pod, or a slot.
      this.#options.onChange(key);
      return false;
    }
    if (!isClaim && this.#slotUsage.isReserved(keyOf({ namespace, name: pod }))) return true;
    if (this.assess(applicant, pod) !== 'Available') return false;
    const served = this.#offers.with(applicant);
    if (this.#queue.leave(key)) this.#offers.taken(key);
    else this.#offers.forget();
    this.reservations.hold(applicant, pod);
    this.#queue.served(namespace, this.#options.clock.now(), keyOf({ namespace, name: pod }));
    if (served?.othersFollow) this.vacancy();
    return true;
  }

  /** Reports whether the pod of a pool can be claimed, as far as slots are concerned, or given up. */
  isAvailable(namespace: string, pod: string): boolean {
    return this.#unclaimed.isAvailable(keyOf({ namespace, name: pod }));
  }

  /** Reports whether a session has the pod of a pool, or is about to claim it. */
  isTaken(namespace: string, pod: string): boolean {
    return this.#slotUsage.isTaken(keyOf({ namespace, name: pod }));
  }

  /** Reports whether the pod of a pool is to be given up for a session that waits. */
  isGivenUp(namespace: string, pod: string): boolean {
    return this.#plan.isGivenUp(namespace, pod);
  }

  /** Room for one more pod of a pool. */
  room(space: Space & { class: string }): Room {
    const limits = this.#limitsIfKnown(space);
    if (typeof limits === 'string') return { free: false, why: 'Unknown', message: limits };
    return poolRoom(space, limits, { queue: this.#queue, tally: this.tally, limitsOf: (of) => this.#limits(of) });
  }

  /** The lowest number of slots that pods of this class in this namespace can have; undefined: no limit, or unknown. */
  most(space: Space & { class: string }): number | undefined {
    const limits = this.#limits(space);
    if (typeof limits === 'string' || limits.length === 0) return undefined;
    return Math.min(...limits.map(({ slots }) => slots));
  }

  /**
   * Takes a slot for a new pod of a pool, in the pod's own name, if there is room. It stays taken until `confirm`, and the pod is
   * neither claimed nor given up before.
   */
  reserveForPool(space: Space & { class: string }, pod: string): boolean {
    if (!this.room(space).free) return false;
    this.reservations.hold({ key: keyOf({ namespace: space.namespace, name: pod }), ...space }, pod);
    return true;
  }

  /** Requeues the sessions of the queue that could claim a pod which can be claimed from now on. */
  requeueClaimants({ namespace, class: ofClass }: Space): void {
    for (const key of this.#queue.keys()) {
      const { namespace: theirs, name } = refOf(key);
      const session = theirs === namespace ? this.#options.caches.session(namespace, name) : undefined;
      if (session?.spec.class === ofClass) this.#options.onChange(key);
    }
  }

  /** A pod of a pool that nobody claims any more can be claimed or given up. */
  #released(pod: string): void {
    const available = this.#unclaimed.availableOne(pod);
    if (!available) return;
    this.#options.onPoolPod?.(available);
    this.#offers.renew();
  }

  /** Reports whether the pod has a slot: it exists, has one reserved, or belongs to a session that was admitted with it. */
  hasSlot(namespace: string, pod: string): boolean {
    return this.#slotUsage.holder(keyOf({ namespace, name: pod })) !== undefined;
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
    this.#offers.renew();
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

  /** Limits of the space while slots may be taken; a message where anything is unknown. */
  #limitsIfKnown(space: Space): Limit[] | string {
    if (!this.#knows()) return notKnown('Whether a running slot is free', this.#options.epoch());
    return this.#limits(space);
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
}
