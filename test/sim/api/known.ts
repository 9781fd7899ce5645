/** Versions of each kind that a process's watches have shown it. Its caches are at least as new. */
export class Known {
  /** Plural → the versions shown, in order of time. */
  readonly #shown = new Map<string, { at: number; version: number }[]>();

  /** Records that the process has been shown the kind as of `version`; `at` is virtual milliseconds. */
  shown(plural: string, version: number, at: number): void {
    const all = this.#shown.get(plural) ?? [];
    this.#shown.set(plural, all);
    all.push({ at, version });
  }

  /** Returns the version in which the process knew the kind at that time; 0 when it had been shown none. */
  version(plural: string, at: number): number {
    return this.#shown.get(plural)?.findLast((one) => one.at <= at)?.version ?? 0;
  }
}
