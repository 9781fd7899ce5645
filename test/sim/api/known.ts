/** Versions of each kind that a process's watches have shown it. Its caches are at least as new. */
export class Known {
  /** Plural → namespace that is watched for itself, or empty → the versions shown, in order of time. */
  readonly #shown = new Map<string, Map<string, { at: number; version: number }[]>>();

  /** Records that the process has been shown the kind in the namespace, or in all, as of `version`; `at` is virtual milliseconds. */
  shown(plural: string, namespace: string | undefined, version: number, at: number): void {
    const watches = this.#shown.get(plural) ?? new Map<string, { at: number; version: number }[]>();
    this.#shown.set(plural, watches);
    const all = watches.get(namespace ?? '') ?? [];
    watches.set(namespace ?? '', all);
    all.push({ at, version });
  }

  /** Returns the version in which the process knew the whole kind at that time; 0 when it had been shown none. */
  version(plural: string, at: number): number {
    const watches = [...(this.#shown.get(plural)?.values() ?? [])];
    const versions = watches.map((all) => all.findLast((one) => one.at <= at)?.version ?? 0);
    return versions.length === 0 ? 0 : Math.min(...versions);
  }
}
