import type { Attachment } from './attachment.ts';

/** A client that reads, or one that has gone and may come back for what it did not acknowledge. */
interface Reader {
  attachment: Pick<Attachment, 'acknowledged'>;
  isGone: boolean;
}

/** Clients that read a command's output. What one of them may still ask for is kept for all. */
export class Readers {
  readonly #all = new Set<Reader>();

  /** True while a client is attached. */
  get isAttached(): boolean {
    return [...this.#all].some(({ isGone }) => !isGone);
  }

  /** Position up to which every client has the output; undefined without a client. */
  get acknowledged(): number | undefined {
    return this.#all.size > 0
      ? Math.min(...[...this.#all].map(({ attachment }) => attachment.acknowledged))
      : undefined;
  }

  /** Adds a client that begins at a position. It is taken for the one that has gone and acknowledged most up to there. */
  add(attachment: Reader['attachment'], from: number): Reader {
    const gone = [...this.#all].filter((reader) => reader.isGone && reader.attachment.acknowledged <= from);
    const [nearest] = gone.sort((a, b) => b.attachment.acknowledged - a.attachment.acknowledged);
    if (nearest) this.#all.delete(nearest);
    const reader: Reader = { attachment, isGone: false };
    this.#all.add(reader);
    return reader;
  }

  /** Forgets a client that does not come back. */
  forget(reader: Reader): void {
    this.#all.delete(reader);
  }
}
