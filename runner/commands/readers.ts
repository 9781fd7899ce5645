import type { Attachment } from './attachment.ts';

/** A client that reads, or one that has gone and may come back for what it did not acknowledge. */
interface Reader {
  attachment: Pick<Attachment, 'acknowledged'>;
  /** Position at which it began. */
  from: number;
  isGone: boolean;
  /** True once it is taken for one that had gone unseen. */
  hasComeBack: boolean;
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
    const reader: Reader = { attachment, from, isGone: false, hasComeBack: nearest?.hasComeBack ?? false };
    this.#all.add(reader);
    return reader;
  }

  /**
   * Notes that a client has gone. One that came after it, and began where this one might have gone on, is taken for it: a client may be back
   * before the end of its lost connection is seen.
   */
  left(reader: Reader): void {
    reader.isGone = true;
    const all = [...this.#all];
    const later = all.slice(all.indexOf(reader) + 1);
    const { acknowledged } = reader.attachment;
    const back = later.find(({ isGone, hasComeBack, from }) => !isGone && !hasComeBack && acknowledged <= from);
    if (!back) return;
    back.hasComeBack = true;
    this.#all.delete(reader);
  }

  /** Forgets a client that does not come back. */
  forget(reader: Reader): void {
    this.#all.delete(reader);
  }
}
