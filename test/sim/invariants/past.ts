/** History of a value, with the time from which each value held. */
export class Past<T> {
  readonly #values: { value: T; from: number }[] = [];

  /** Records that `value` holds from `now` on; virtual milliseconds. */
  becomes(value: T, now: number): void {
    const last = this.#values.at(-1);
    if (!last || last.value !== value) this.#values.push({ value, from: now });
  }

  /** Returns all values that have held since `at`, with the one that held at that moment. */
  since(at: number): T[] {
    return this.#values
      .filter((_one, index) => (this.#values[index + 1]?.from ?? Number.POSITIVE_INFINITY) >= at)
      .map(({ value }) => value);
  }
}

/** Histories of many values, by key. */
export class Pasts<T> {
  readonly #pasts = new Map<string, Past<T>>();

  becomes(what: string, value: T, now: number): void {
    const past = this.#pasts.get(what) ?? new Past<T>();
    this.#pasts.set(what, past);
    past.becomes(value, now);
  }

  since(what: string, at: number): T[] {
    return this.#pasts.get(what)?.since(at) ?? [];
  }

  /** Yields the keys that have had `value` at some time since `at`. */
  everBeen(value: T, at: number): Iterable<string> {
    return this.everBeenSuchThat((one) => one === value, at);
  }

  /** Yields the keys that have had such a value at some time since `at`. */
  *everBeenSuchThat(holds: (value: T) => boolean, at: number): Iterable<string> {
    for (const [what, past] of this.#pasts) if (past.since(at).some(holds)) yield what;
  }
}
