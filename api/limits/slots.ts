/** Limit that a request exceeds: the caller's share, or the maximum of all callers together. */
export type Exceeded = 'caller' | 'all';

/** Concurrent slots of one kind. A caller gets a share of them, at least one. */
export class Slots {
  readonly max: number;
  readonly share: number;
  #used = 0;
  readonly #usedBy = new Map<string, number>();

  constructor({ max, sharePercent }: { max: number; sharePercent: number }) {
    this.max = max;
    this.share = Math.max(1, Math.floor((max * sharePercent) / 100));
  }

  get used(): number {
    return this.#used;
  }

  /** Takes a slot and returns the function that frees it, or the limit that refuses it. */
  take(caller: string): (() => void) | Exceeded {
    const own = this.#usedBy.get(caller) ?? 0;
    if (this.#used >= this.max) return 'all';
    if (own >= this.share) return 'caller';
    this.#used += 1;
    this.#usedBy.set(caller, own + 1);
    let isFree = false;
    return () => {
      if (isFree) return;
      isFree = true;
      this.#used -= 1;
      const left = (this.#usedBy.get(caller) ?? 1) - 1;
      if (left > 0) this.#usedBy.set(caller, left);
      else this.#usedBy.delete(caller);
    };
  }
}
