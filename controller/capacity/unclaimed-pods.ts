import type { StoredPod } from '../../core/kube/builtin.ts';
import { keyOf } from '../../core/kube/cache.ts';
import type { Applicant } from '../observed/capacity-view.ts';
import { isUnclaimed } from '../observed/session-pods.ts';
import type { SlotUsage } from './slot-usage.ts';

/** Pods of pools that no session has claimed and that are not terminating, by their keys `namespace/name`. */
export class UnclaimedPods {
  readonly #pods = new Map<string, StoredPod>();
  readonly #slotUsage: Pick<SlotUsage, 'isTaken' | 'isReserved'>;

  constructor(slotUsage: Pick<SlotUsage, 'isTaken' | 'isReserved'>) {
    this.#slotUsage = slotUsage;
  }

  /** Returns whether the pod was not among them and is now. */
  update(pod: StoredPod, gone: boolean): boolean {
    const key = keyOf(pod.metadata);
    const isNew = !this.#pods.has(key);
    const isThere = !gone && isUnclaimed(pod) && !pod.metadata.deletionTimestamp;
    if (isThere) this.#pods.set(key, pod);
    else this.#pods.delete(key);
    return isNew && isThere;
  }

  /** Reports whether the pod can be claimed, as far as slots are concerned, or given up. */
  isAvailable(key: string): boolean {
    return this.#pods.has(key) && !this.#slotUsage.isTaken(key) && !this.#slotUsage.isReserved(key);
  }

  /** The pod, if it is available. */
  availableOne(key: string): StoredPod | undefined {
    return this.isAvailable(key) ? this.#pods.get(key) : undefined;
  }

  available(): StoredPod[] {
    return [...this.#pods.values()].filter(({ metadata }) => this.isAvailable(keyOf(metadata)));
  }

  /** Reports whether there is a pod that the session can claim. */
  hasFor({ namespace, warm = [] }: Applicant): boolean {
    return warm.some((name) => this.isAvailable(keyOf({ namespace, name })));
  }
}
