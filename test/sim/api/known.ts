/** What a process has been shown of each kind by its watches: its caches are at least that new. */
export class Known {
  /** By plural, in order of time. */
  readonly #shown = new Map<string, { at: number; version: number }[]>();

  /** The process has been shown the kind as it was in `version`; `at` in virtual milliseconds. */
  shown(plural: string, version: number, at: number): void {
    const all = this.#shown.get(plural) ?? [];
    this.#shown.set(plural, all);
    all.push({ at, version });
  }

  /** The version in which it knew the kind at that time; 0 when it had not been shown any. */
  version(plural: string, at: number): number {
    return this.#shown.get(plural)?.findLast((one) => one.at <= at)?.version ?? 0;
  }
}
