import { keyOf, refOf } from '../../core/kube/cache.ts';
import { isConflict, isRefusal } from '../../core/kube/errors.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import type { Applicant } from '../observed/capacity-view.ts';
import { applicantOf } from './applicant.ts';
import type { Queue } from './queue.ts';
import type { SlotUsage } from './slot-usage.ts';
import { Unconfirmed } from './unconfirmed.ts';

export interface ReservationsOptions {
  caches: Pick<Caches, 'session' | 'staleness'>;
  clock: Clock;
  queue: Queue;
  slotUsage: SlotUsage;
}

/** Slots of pods that are about to be made or claimed: each is taken until it is known what became of the requests for its pod. */
export class Reservations {
  readonly #options: ReservationsOptions;
  /** Pods whose creation may still take effect. */
  readonly #unconfirmed: Unconfirmed;

  constructor(options: ReservationsOptions) {
    this.#options = options;
    this.#unconfirmed = new Unconfirmed(options.clock, options.caches);
  }

  close(): void {
    this.#unconfirmed.close();
  }

  /** The pod is about to be made for the session: it counts until `confirm`, even if its session goes before. */
  hold({ key, namespace, class: ofClass }: Omit<Applicant, 'priority' | 'since'>, pod: string): void {
    const { clock, slotUsage } = this.#options;
    slotUsage.reserve(keyOf({ namespace, name: pod }), { name: key, namespace, class: ofClass, since: clock.now() });
  }

  /**
   * Holds a slot for `ms` milliseconds for a pod that a late write of the earlier leader may still give the session,
   * beside the slot of the pod that this leader gives it.
   */
  holdForLateWrite(key: string, ms: number): void {
    const { namespace, name } = refOf(key);
    const session = this.#options.caches.session(namespace, name);
    if (!session || session.status?.podName) return;
    const late = `late pod of ${name}`;
    this.hold(applicantOf(session, []), late);
    this.#unconfirmed.awaitFor(keyOf({ namespace, name: late }), ms, () => this.confirm(namespace, late));
  }

  /**
   * The API server refused to admit the session with the pod: its namespace keeps its turn in the queue, unless an earlier
   * request of the same may have taken effect.
   */
  refused(namespace: string, pod: string): void {
    const key = keyOf({ namespace, name: pod });
    if (!this.#unconfirmed.has(key)) this.#options.queue.refused(key);
  }

  /** Ends a reservation: the caches show the pod, or it can no longer be created. */
  confirm(namespace: string, pod: string): void {
    const { queue, slotUsage } = this.#options;
    const key = keyOf({ namespace, name: pod });
    queue.confirmed(key);
    this.#unconfirmed.end(key);
    slotUsage.confirm(key);
  }

  /**
   * Ends the reservation after a request for the pod has failed, or keeps it as long as the request may take effect. A refusal does
   * not, if nothing is under way from an earlier request.
   */
  failed(namespace: string, pod: string, error: unknown): void {
    const key = keyOf({ namespace, name: pod });
    if (isRefusal(error) && !isConflict(error) && !this.#unconfirmed.has(key)) this.confirm(namespace, pod);
    else this.#unconfirmed.await(key, () => this.confirm(namespace, pod));
  }
}
