/** What something has been, from when on each. */
export class Past<T> {
  readonly #values: { value: T; from: number }[] = [];

  /** `value` from now on; virtual milliseconds. */
  becomes(value: T, now: number): void {
    if (this.#values.at(-1)?.value !== value) this.#values.push({ value, from: now });
  }

  /** All that it has been since then, what it was at that moment included. */
  since(at: number): T[] {
    return this.#values
      .filter((_one, index) => (this.#values[index + 1]?.from ?? Number.POSITIVE_INFINITY) >= at)
      .map(({ value }) => value);
  }
}

/** The pasts of many things. */
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

  /** Those that have been `value` at some time since then. */
  *everBeen(value: T, at: number): Iterable<string> {
    for (const [what, past] of this.#pasts) if (past.since(at).includes(value)) yield what;
  }
}
