import type { Dropped, FrameKind } from './messages.ts';

/**
 * Ranges of frame numbers that are no longer held, with a count per kind. There is at most one range more than there
 * are frames held between them.
 */
export class ReleasedRanges {
  /** Ascending ranges that are never adjacent. */
  readonly #ranges: Dropped[] = [];

  add(seq: number, kind: FrameKind): void {
    const index = this.#firstFrom(seq);
    const before = this.#ranges[index - 1];
    const after = this.#ranges[index];
    const joinsBefore = before?.to === seq - 1;
    const joinsAfter = after?.from === seq + 1;
    if (before && joinsBefore) {
      before.to = seq;
      count(before, kind, 1);
      if (after && joinsAfter) {
        before.to = after.to;
        for (const [name, n] of Object.entries(after.counts)) count(before, name as FrameKind, n);
        this.#ranges.splice(index, 1);
      }
    } else if (after && joinsAfter) {
      after.from = seq;
      count(after, kind, 1);
    } else {
      const range: Dropped = { from: seq, to: seq, counts: {} };
      count(range, kind, 1);
      this.#ranges.splice(index, 0, range);
    }
  }

  /** Returns the whole range that holds this number. Throws a RangeError when the number was never released. */
  covering(seq: number): Dropped {
    const index = this.#firstFrom(seq + 1) - 1;
    const range = this.#ranges[index];
    if (!range || range.to < seq) throw new RangeError(`frame ${seq} was not released`);
    return range;
  }

  /** Index of the first range that begins at `seq` or later. */
  #firstFrom(seq: number): number {
    let low = 0;
    let high = this.#ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ranges[middle] as Dropped).from < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function count(range: Dropped, kind: FrameKind, n: number): void {
  // A controller from before artifacts refuses a whole message that counts a kind which it does not know.
  if (kind === 'artifacts') return;
  range.counts[kind] = (range.counts[kind] ?? 0) + n;
}
