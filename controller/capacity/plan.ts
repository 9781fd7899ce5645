import type { StoredPod } from '../../core/kube/builtin.ts';
import { keyOf, refOf } from '../../core/kube/cache.ts';
import { LABEL_CLASS } from '../../core/resources/names.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import type { Limit } from './limits.ts';
import { type PreemptionCandidate, planPreemption, poolKey } from './preemption.ts';
import { preemptionCandidateOf } from './preemption-candidate.ts';
import type { Queue } from './queue.ts';
import type { SlotUsage } from './slot-usage.ts';
import { type Space, Tally } from './tally.ts';

export interface PlanOptions {
  caches: Pick<Caches, 'session' | 'pod' | 'class' | 'turnsNaming' | 'allSessions' | 'allPods' | 'closed'>;
  clock: Clock;
  queue: Queue;
  slotUsage: SlotUsage;
  limits(space: Space): Limit[] | string;
  suspendAgainAt(key: string): number | undefined;
  /** Pods of pools that no session has claimed or is about to. */
  available(): StoredPod[];
  /** Handler of a session that is to be preempted, or no longer is. */
  onChange(key: string): void;
  /** Handler of a pool's pod that is to be given up, or no longer is. */
  onGivenUp(pod: StoredPod): void;
}

/** Time from the end of a plan to the next while sessions wait: sessions become idle by time alone. */
const PLAN_MS = 1_000;
/**
 * Time within which a preempted session must begin to suspend; after that it is not chosen for `SPARE_MS`, and another
 * one is.
 */
const PATIENCE_MS = 30_000;
const SPARE_MS = 60_000;
/** Age of a pod's overdue end after which it counts as stuck: its slot is not about to become free. */
const HANGS_MS = 30_000;

interface Preemption {
  for: string;
  /** Name of the pod that it is to give up. */
  pod: string;
  /** Time of the choice, milliseconds of the monotonic clock. */
  at: number;
}

/** Sessions that are to be preempted at the moment. A choice holds as long as a waiting session gains by it. */
export class PreemptionPlan {
  readonly #options: PlanOptions;
  #preempted = new Map<string, Preemption>();
  /** Pods of pools that are to be given up, by the key of the candidate. */
  #givenUp = new Map<string, StoredPod>();
  /** Sessions whose preemption did not begin in time → time until which they are not chosen again. */
  readonly #sparedUntil = new Map<string, number>();
  /** Monotonic time of the end of the last plan. */
  #plannedAt = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(options: PlanOptions) {
    this.#options = options;
  }

  preemptFor(key: string): { for: string } | undefined {
    const preemption = this.#preempted.get(key);
    return preemption && preemption.pod === this.#podOf(key) ? { for: preemption.for } : undefined;
  }

  /** Reports whether the pod of a pool is to be given up. */
  isGivenUp(namespace: string, pod: string): boolean {
    return this.#givenUp.has(poolKey(namespace, pod));
  }

  /** Plans again: at once, but at most every `PLAN_MS`. */
  soon(): void {
    if (this.#cancel) return;
    const { clock } = this.#options;
    const left = Math.max(0, this.#plannedAt + PLAN_MS - clock.monotonic());
    this.#cancel = clock.setTimer(left, () => {
      this.#cancel = undefined;
      this.#plan();
      // From the end, so that a plan that takes long leaves time for other work.
      this.#plannedAt = clock.monotonic();
      if (this.#options.queue.size > 0 || this.#preempted.size > 0 || this.#givenUp.size > 0) this.soon();
    });
  }

  stop(): void {
    this.#cancel?.();
    // A cancel function that does nothing keeps `soon` from planning again.
    this.#cancel = () => {};
    this.#preempted.clear();
    this.#givenUp.clear();
  }

  #plan(): void {
    const { queue, limits, caches, clock, onChange } = this.#options;
    const before = this.#preempted;
    // Pods of a namespace that cannot be read are given up by nobody.
    const available = queue.size > 0 ? this.#options.available() : [];
    const pods = available.filter(({ metadata }) => caches.closed(metadata.namespace) === undefined);
    const chosen = planPreemption({
      queue,
      limits,
      tally: this.#staying(),
      candidates: queue.size > 0 ? [...pods.map(poolCandidate), ...this.#candidates()] : [],
      minIdle: (name) => caches.class(name)?.spec.minIdle ?? 0,
    });
    this.#preempted = new Map();
    for (const [key, preemption] of before)
      if (this.#isTerminating(key, preemption)) this.#preempted.set(key, preemption);
    for (const [key, applicant] of chosen) {
      const pod = this.#podOf(key);
      if (pod === undefined) continue;
      const known = before.get(key);
      const at = known?.pod === pod ? known.at : clock.monotonic();
      this.#preempted.set(key, { for: applicant, pod, at });
    }
    for (const [key, until] of this.#sparedUntil) if (until <= clock.monotonic()) this.#sparedUntil.delete(key);
    for (const key of this.#preempted.keys()) if (!before.has(key)) onChange(key);
    for (const key of before.keys()) if (!this.#preempted.has(key)) onChange(key);
    this.#planGivenUp(pods.filter(({ metadata }) => chosen.has(poolKey(metadata.namespace, metadata.name))));
  }

  #planGivenUp(pods: StoredPod[]): void {
    const before = this.#givenUp;
    this.#givenUp = new Map(pods.map((pod) => [poolKey(pod.metadata.namespace, pod.metadata.name), pod]));
    for (const [key, pod] of this.#givenUp) if (!before.has(key)) this.#options.onGivenUp(pod);
    for (const [key, pod] of before) if (!this.#givenUp.has(key)) this.#options.onGivenUp(pod);
  }

  /**
   * Reports whether the session's pod is terminating: the session keeps its reason for preemption until its pod is
   * gone.
   */
  #isTerminating(key: string, { pod }: Preemption): boolean {
    if (this.#podOf(key) !== pod) return false;
    const seen = this.#options.caches.pod(refOf(key).namespace, pod);
    return !seen || seen.metadata.deletionTimestamp !== undefined;
  }

  /** Slots taken, without those of terminating pods. */
  #staying(): Tally {
    const { caches, slotUsage, clock } = this.#options;
    const tally = Tally.copy(slotUsage.tally);
    for (const { metadata } of caches.allPods()) {
      const { deletionTimestamp } = metadata;
      const leaves = deletionTimestamp && clock.now() < Date.parse(deletionTimestamp) + HANGS_MS;
      const holder = leaves ? slotUsage.holder(keyOf(metadata)) : undefined;
      if (holder) tally.add(holder, -1);
    }
    return tally;
  }

  #candidates(): PreemptionCandidate[] {
    const { caches, clock, suspendAgainAt } = this.#options;
    const candidates: PreemptionCandidate[] = [];
    for (const session of caches.allSessions()) {
      // Sessions of unreadable namespaces cannot be suspended.
      if (caches.closed(session.metadata.namespace)) continue;
      const candidate = preemptionCandidateOf(session, caches, clock.now());
      if (!candidate) continue;
      const preemption = this.#preempted.get(candidate.key);
      candidate.isSuspending = preemption !== undefined && preemption.pod === session.status?.podName;
      if (
        (suspendAgainAt(candidate.key) ?? 0) > clock.now() ||
        this.#isExempt(candidate.key, preemption, session.status?.phase)
      ) {
        candidate.spared = true;
      }
      candidates.push(candidate);
    }
    return candidates;
  }

  #isExempt(key: string, preemption: Preemption | undefined, phase: string | undefined): boolean {
    const now = this.#options.clock.monotonic();
    const until = this.#sparedUntil.get(key) ?? Number.NEGATIVE_INFINITY;
    if (until > now) return true;
    if (!preemption || phase === 'Suspending' || now - preemption.at < PATIENCE_MS) return false;
    this.#sparedUntil.set(key, now + SPARE_MS);
    return true;
  }

  #podOf(key: string): string | undefined {
    const { namespace, name } = refOf(key);
    return this.#options.caches.session(namespace, name)?.status?.podName;
  }
}

/** The longer a pod has been there, the sooner it would have to be replaced. */
function poolCandidate({ metadata: { namespace, name, labels, creationTimestamp } }: StoredPod): PreemptionCandidate {
  const since = Date.parse(creationTimestamp);
  return { key: poolKey(namespace, name), namespace, class: labels?.[LABEL_CLASS] ?? '', rests: 'Pool', since };
}
