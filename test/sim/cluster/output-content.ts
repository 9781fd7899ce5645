import { digestOf } from '../../../core/artifacts/packed.ts';
import type { CollectedArtifacts } from '../../../runner/artifacts/artifacts.ts';

/** BERTH_OUTPUT_DIR in memory. */
export class OutputContent {
  readonly #files = new Map<string, Buffer>();

  get isEmpty(): boolean {
    return this.#files.size === 0;
  }

  empty(): void {
    this.#files.clear();
  }

  write(name: string, content: Buffer): void {
    this.#files.set(name, content);
  }

  collect(): CollectedArtifacts {
    const files = [...this.#files].map(([name, content]) => ({
      name,
      bytes: content.length,
      digest: digestOf(content),
    }));
    return { files, contents: [...this.#files.values()], leftOut: { count: 0, entries: [] }, redactions: 0 };
  }
}
