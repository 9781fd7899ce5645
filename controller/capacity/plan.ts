import { keyOf, refOf } from '../../core/kube/cache.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import type { Limit } from './limits.ts';
import { type PreemptionCandidate, planPreemption } from './preemption.ts';
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
  /** The session is to give way, or is no longer to. */
  onChange(key: string): void;
}

/** Between two looks at who could give way, while somebody waits: time alone makes sessions idle. */
const LOOK_MS = 1_000;
/** A session that was to give way and has not begun to by then is left alone for a while, for another one's sake. */
const PATIENCE_MS = 30_000;
const ASIDE_MS = 60_000;
/** A pod that should have ended so long ago hangs: its place is not about to become free. */
const HANGS_MS = 30_000;

interface Giving {
  for: string;
  /** The pod that it is to give up. */
  pod: string;
  /** Since when, milliseconds of the monotonic clock. */
  at: number;
}

/** Which sessions are to give way at the moment. It holds as long as somebody waits who gains by it. */
export class PreemptionPlan {
  readonly #options: PlanOptions;
  #giving = new Map<string, Giving>();
  /** Sessions that did not get away → until when they are left alone. */
  readonly #aside = new Map<string, number>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(options: PlanOptions) {
    this.#options = options;
  }

  preemptFor(key: string): { for: string } | undefined {
    const giving = this.#giving.get(key);
    return giving && giving.pod === this.#podOf(key) ? { for: giving.for } : undefined;
  }

  /** Looks again: at once, but not more often than once in a while. */
  soon(): void {
    if (this.#cancel) return;
    const { clock } = this.#options;
    const left = Math.max(0, this.#lookedAt + LOOK_MS - clock.monotonic());
    this.#cancel = clock.setTimer(left, () => {
      this.#cancel = undefined;
      this.#lookedAt = clock.monotonic();
      this.#look();
      if (this.#options.queue.size > 0 || this.#giving.size > 0) this.soon();
    });
  }

  stop(): void {
    this.#cancel?.();
    // Nothing is planned any more.
    this.#cancel = () => {};
    this.#giving.clear();
  }

  #look(): void {
    const { queue, limits, caches, clock, onChange } = this.#options;
    const before = this.#giving;
    const chosen = planPreemption({
      queue,
      limits,
      tally: this.#staying(),
      candidates: queue.size > 0 ? this.#candidates() : [],
      minIdle: (name) => caches.class(name)?.spec.minIdle ?? 0,
    });
    this.#giving = new Map();
    for (const [key, giving] of before) if (this.#isLeaving(key, giving)) this.#giving.set(key, giving);
    for (const [key, applicant] of chosen) {
      const pod = this.#podOf(key);
      if (pod === undefined) continue;
      const known = before.get(key);
      const at = known?.pod === pod ? known.at : clock.monotonic();
      this.#giving.set(key, { for: applicant, pod, at });
    }
    for (const [key, until] of this.#aside) if (until <= clock.monotonic()) this.#aside.delete(key);
    for (const key of this.#giving.keys()) if (!before.has(key)) onChange(key);
    for (const key of before.keys()) if (!this.#giving.has(key)) onChange(key);
  }

  /** Its pod is on its way out: the session is told to whom it gave way until it has let go of it. */
  #isLeaving(key: string, { pod }: Giving): boolean {
    if (this.#podOf(key) !== pod) return false;
    const seen = this.#options.caches.pod(refOf(key).namespace ?? '', pod);
    return !seen || seen.metadata.deletionTimestamp !== undefined;
  }

  /** Places taken, without those whose pods are on their way out. */
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
      // There nobody can be asked to leave.
      if (caches.closed(session.metadata.namespace as string)) continue;
      const candidate = preemptionCandidateOf(session, caches, clock.now());
      if (!candidate) continue;
      const giving = this.#giving.get(candidate.key);
      candidate.going = giving !== undefined && giving.pod === session.status?.podName;
      if (
        (suspendAgainAt(candidate.key) ?? 0) > clock.now() ||
        this.#isAside(candidate.key, giving, session.status?.phase)
      ) {
        candidate.spared = true;
      }
      candidates.push(candidate);
    }
    return candidates;
  }

  #isAside(key: string, giving: Giving | undefined, phase: string | undefined): boolean {
    const now = this.#options.clock.monotonic();
    const until = this.#aside.get(key) ?? Number.NEGATIVE_INFINITY;
    if (until > now) return true;
    if (!giving || phase === 'Suspending' || now - giving.at < PATIENCE_MS) return false;
    this.#aside.set(key, now + ASIDE_MS);
    return true;
  }

  #podOf(key: string): string | undefined {
    const { namespace = '', name } = refOf(key);
    return this.#options.caches.session(namespace, name)?.status?.podName;
  }
}
