/** Bytes of archives that are held after their last use, so that sessions that start one after another share a read. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;

/** Sealed archives of environments, as read from the store: up to 64 MiB each, one copy for all sessions that start with it. */
export class Archives {
  /** Archives by the key of their content, the last used one last; 0 bytes while one is being read. */
  readonly #held = new Map<string, { archive: Promise<Buffer>; bytes: number }>();

  /** Returns the archive with this key, which `read` reads where it is not held. Rejects as `read` does. */
  get(key: string, read: () => Promise<Buffer>): Promise<Buffer> {
    const held = this.#held.get(key);
    if (held) {
      this.#held.delete(key);
      this.#held.set(key, held);
      return held.archive;
    }
    const entry = { archive: read(), bytes: 0 };
    this.#held.set(key, entry);
    entry.archive.then(
      ({ length }) => {
        entry.bytes = length;
        this.#forget();
      },
      () => this.#held.delete(key),
    );
    return entry.archive;
  }

  #forget(): void {
    let bytes = [...this.#held.values()].reduce((sum, held) => sum + held.bytes, 0);
    for (const [key, held] of this.#held) {
      if (bytes <= MAX_HELD_BYTES) return;
      this.#held.delete(key);
      bytes -= held.bytes;
    }
  }
}
