import type { Random } from '../../core/runtime.ts';

/** Random bytes of the first number: 48 bits, so that the numbers of two leaders do not meet. */
const START_BYTES = 6;

/**
 * Numbers of the pods that one leader creates for one pool. A number is never given to a second pod: the log of a pod is
 * found by the pod's name, and so are streams, caches and slots. The first number is random, because this leader does not
 * know which numbers others gave to pods that are gone.
 */
export class PodNumbers {
  #next: number;

  constructor(random: Random) {
    this.#next = random.bytes(START_BYTES).readUIntBE(0, START_BYTES);
  }

  /**
   * Number of the next creation. It stays the same until a pod is known to have had it: a creation whose answer was lost is
   * sent again under the same name, and makes no second pod.
   */
  get next(): number {
    return this.#next;
  }

  /** Notes that a pod has, or had, this number. */
  sawPod(number: number): void {
    if (number === this.#next) this.#next += 1;
  }
}
