import type { GarbageTools } from './context.ts';
import { clearStates, giveWay } from './make-room.ts';

/** Time for which a namespace is not looked at again after no turn could give way. */
const FOUND_NONE_MS = 20_000;
/** Fraction of a share that is made free at least, so that turns are not read for every write. */
const LEAST_FRACTION = 1 / 16;

/** Room that puts wait for in one namespace. */
interface Wish {
  bytes: number;
  settle: { resolve: (isMade: boolean) => void; reject: (error: unknown) => void }[];
}

/** Makes room in namespaces: one run at a time for each, whoever asks. */
export class Rooms {
  readonly #wishes = new Map<string, Wish>();
  /** Namespace → monotonic time at which no turn could give way there. */
  readonly #foundNoneAt = new Map<string, number>();
  #ended: Error | undefined;

  /** Resolves with whether the next `make` of the namespace has removed anything; history only for more than 0 `bytes`. */
  ask(namespace: string, bytes: number): Promise<boolean> {
    if (this.#ended) return Promise.reject(this.#ended);
    const wish = this.#wishes.get(namespace) ?? { bytes: 0, settle: [] };
    wish.bytes += bytes;
    this.#wishes.set(namespace, wish);
    return new Promise((resolve, reject) => wish.settle.push({ resolve, reject }));
  }

  /**
   * Removes the superseded states of the namespace and, where there are none and somebody has asked, its oldest turns with
   * what they have stored.
   */
  async make(tools: GarbageTools, namespace: string, signal: AbortSignal): Promise<void> {
    const wish = this.#wishes.get(namespace);
    this.#wishes.delete(namespace);
    try {
      // Nothing is known of the sessions of a namespace that cannot be read.
      const isReadable = !tools.caches.closed(namespace);
      const isCleared = isReadable && (await clearStates(tools, namespace, signal));
      const gives = isReadable && !isCleared && wish !== undefined && wish.bytes > 0;
      const isMade = isCleared || (gives && (await this.#give(tools, namespace, wish.bytes, signal)));
      if (isMade) await tools.store.recount(signal);
      for (const { resolve } of wish?.settle ?? []) resolve(isMade);
    } catch (error) {
      for (const { reject } of wish?.settle ?? []) reject(error);
      throw error;
    }
  }

  /** Turns are read for this, so a namespace in which none could give way is not looked at again for a while. */
  async #give(tools: GarbageTools, namespace: string, bytes: number, signal: AbortSignal): Promise<boolean> {
    const { clock, store } = tools;
    const noneAt = this.#foundNoneAt.get(namespace) ?? Number.NEGATIVE_INFINITY;
    if (clock.monotonic() - noneAt < FOUND_NONE_MS) return false;
    const least = (store.roomOf(namespace)?.share ?? 0) * LEAST_FRACTION;
    const gave = await giveWay(tools, namespace, Math.max(bytes, least), signal);
    if (gave) this.#foundNoneAt.delete(namespace);
    else this.#foundNoneAt.set(namespace, clock.monotonic());
    return gave;
  }

  /** Rejects all requests: nothing is removed any more. */
  end(reason: Error): void {
    this.#ended = reason;
    for (const { settle } of this.#wishes.values()) for (const { reject } of settle) reject(reason);
    this.#wishes.clear();
  }
}
