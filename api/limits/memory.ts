import type { Exceeded } from './slots.ts';

/** Bytes of one request, which are held until its answer has been sent. */
export interface Held {
  /** Holds `bytes` altogether, more or fewer than before; returns the limit that refuses it, and then holds what it did. */
  resize(bytes: number): Exceeded | undefined;
  /** Bytes held now. */
  readonly bytes: number;
  /** Holds nothing any more, also where `resize` comes later. */
  free(): void;
}

/** Bytes of bodies, contents and lists in memory at once, over all callers and by caller. */
export class Memory {
  readonly max: number;
  /** Bytes that one caller may have. */
  readonly share: number;
  #used = 0;
  readonly #usedBy = new Map<string, number>();

  /** `least`: bytes that every caller may have, however small the percentage is: what a single answer can need. */
  constructor({ max, sharePercent, least }: { max: number; sharePercent: number; least: number }) {
    this.max = max;
    this.share = Math.min(max, Math.max(least, Math.floor((max * sharePercent) / 100)));
  }

  get used(): number {
    return this.#used;
  }

  open(caller: string): Held {
    let held = 0;
    let isOpen = true;
    const add = (bytes: number) => {
      held += bytes;
      this.#used += bytes;
      const own = (this.#usedBy.get(caller) ?? 0) + bytes;
      if (own > 0) this.#usedBy.set(caller, own);
      else this.#usedBy.delete(caller);
    };
    return {
      get bytes() {
        return held;
      },
      resize: (bytes) => {
        if (!isOpen) return undefined;
        const more = bytes - held;
        if (more > 0 && (this.#usedBy.get(caller) ?? 0) + more > this.share) return 'caller';
        if (more > 0 && this.#used + more > this.max) return 'all';
        add(more);
        return undefined;
      },
      free: () => {
        isOpen = false;
        add(-held);
      },
    };
  }
}
