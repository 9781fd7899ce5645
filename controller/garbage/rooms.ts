import type { GarbageTools } from './context.ts';
import { clearStates, giveWay } from './make-room.ts';

/** Room that puts wait for in one namespace. */
interface Wish {
  bytes: number;
  settle: { resolve: (isMade: boolean) => void; reject: (error: unknown) => void }[];
}

/** Makes room in namespaces: one run at a time for each, whoever asks. */
export class Rooms {
  readonly #wishes = new Map<string, Wish>();
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
      const isMade = isCleared || (gives && (await giveWay(tools, namespace, wish.bytes, signal)));
      if (isMade) await tools.store.recount(signal);
      for (const { resolve } of wish?.settle ?? []) resolve(isMade);
    } catch (error) {
      for (const { reject } of wish?.settle ?? []) reject(error);
      throw error;
    }
  }

  /** Rejects what is asked for: nothing is removed any more. */
  end(reason: Error): void {
    this.#ended = reason;
    for (const { settle } of this.#wishes.values()) for (const { reject } of settle) reject(reason);
    this.#wishes.clear();
  }
}
