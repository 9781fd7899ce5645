import type { Clock } from '../../core/runtime.ts';
import type { StateDirectory } from './archive.ts';

/** Knows when the state directory is being packed, so that nothing from outside gets its name in the middle of it. */
export class Packing {
  #packings = new Set<Promise<unknown>>();

  /** Returns a directory that does the same. */
  of(state: StateDirectory): StateDirectory {
    return {
      pack: (maxBytes) => {
        const packing = state.pack(maxBytes);
        this.#packings.add(packing);
        const over = () => void this.#packings.delete(packing);
        packing.then(over, over);
        return packing;
      },
      unpack: (packed, digest) => state.unpack(packed, digest),
    };
  }

  /** Takes a step while nothing is packed; resolves with false, without the step, where it is packed for longer than `ms`. */
  async outside(step: () => void, clock: Clock, ms: number): Promise<boolean> {
    let isLate = false;
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = clock.setTimer(ms, () => {
        isLate = true;
        resolve();
      });
    });
    try {
      while (this.#packings.size > 0 && !isLate) await Promise.race([late, Promise.allSettled(this.#packings)]);
    } finally {
      cancel();
    }
    if (this.#packings.size > 0) return false;
    step();
    return true;
  }
}
