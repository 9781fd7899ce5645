/** Logs of ended containers that are in memory at once, over all sessions and of the pods of one node, which may not answer. */
const PLACES = 4;
const PLACES_OF_A_NODE = 2;

interface Waiting {
  node: string;
  enter(): void;
}

/** Limits how many logs of ended containers are in memory at once: each can take twice the bytes that are read of it. */
export class LogPlaces {
  /** Node → the logs of its pods that are in memory. */
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Set<Waiting>();

  /** Resolves once a log of a pod of the node may be read, with what gives the place back. Rejects when the signal aborts. */
  async take(node: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const waiting = {
        node,
        enter: () => {
          signal.removeEventListener('abort', giveUp);
          resolve(this.#place(node));
        },
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.add(waiting);
      this.#admit();
    });
  }

  #place(node: string): () => void {
    this.#taken.set(node, (this.#taken.get(node) ?? 0) + 1);
    let isBack = false;
    return () => {
      if (isBack) return;
      isBack = true;
      const left = (this.#taken.get(node) ?? 1) - 1;
      if (left > 0) this.#taken.set(node, left);
      else this.#taken.delete(node);
      this.#admit();
    };
  }

  #admit(): void {
    for (const waiting of this.#waiting) {
      const taken = [...this.#taken.values()].reduce((sum, one) => sum + one, 0);
      if (taken >= PLACES) return;
      if ((this.#taken.get(waiting.node) ?? 0) >= PLACES_OF_A_NODE) continue;
      this.#waiting.delete(waiting);
      waiting.enter();
    }
  }
}
