import type { FrameOf, Result } from '../../core/frames/messages.ts';
import type { Asking, Delivery } from '../observed/link-view.ts';

type Kept = FrameOf<'log'> | FrameOf<'state'> | FrameOf<'artifacts'> | FrameOf<'result'> | FrameOf<'approval'>;
type End = FrameOf<'result'> | FrameOf<'approval'>;

const isEnd = (frame: Kept): frame is End => frame.kind === 'result' || frame.kind === 'approval';
/** A snapshot belongs to no turn, so that the state of a turn does not take its place. */
const kindOf = (frame: Kept) => (frame.kind === 'state' && frame.message.turn === undefined ? 'snapshot' : frame.kind);

/**
 * Frames that wait for their commit; joins results and requests with their state, artifacts and log by sequence number. A runner has
 * one turn at a time and gets none before the end of the last is acknowledged. So at most two ends are kept, a request of the turn
 * and its result, with what they name, and beside them the last frame of each kind.
 */
export class Inbox {
  readonly #frames = new Map<number, { frame: Kept; bytes: number }>();

  /** Bytes of the frames that are kept. */
  get bytes(): number {
    let sum = 0;
    for (const { bytes } of this.#frames.values()) sum += bytes;
    return sum;
  }

  /** The lowest number of a frame that is kept; undefined when there is none. */
  get first(): number | undefined {
    return this.#frames.size === 0 ? undefined : Math.min(...this.#frames.keys());
  }

  /** `bytes`: length of the frame's message. */
  add(frame: Kept, bytes: number): void {
    this.#frames.set(frame.seq, { frame, bytes });
    if (isEnd(frame)) for (const { seq } of this.#ends.slice(1, -1)) this.#frames.delete(seq);
    const named = this.#named();
    for (const [seq, { frame: other }] of this.#frames) {
      if (isEnd(other) || other === frame || named.has(seq)) continue;
      const isSnapshot = kindOf(other) === 'snapshot';
      if (kindOf(other) === kindOf(frame) || (isEnd(frame) && !isSnapshot)) this.#frames.delete(seq);
    }
  }

  /** The earliest result or request for approval, with its state and log. */
  next(): { delivery?: Delivery; asking?: Asking } {
    const [end] = this.#ends;
    if (end?.kind === 'result') return { delivery: { result: end, ...this.#with(end.message) } };
    if (end?.kind === 'approval') return { asking: { request: end, ...this.#with(end.message) } };
    return {};
  }

  /** Drops all results and requests but the last: a runner runs one turn after the other. */
  keepLast(): void {
    for (const { seq } of this.#ends.slice(0, -1)) this.#frames.delete(seq);
  }

  forget(through: number): void {
    for (const seq of [...this.#frames.keys()]) if (seq <= through) this.#frames.delete(seq);
  }

  clear(): void {
    this.#frames.clear();
  }

  get #ends(): End[] {
    return [...this.#frames.values()].flatMap(({ frame }) => (isEnd(frame) ? [frame] : []));
  }

  /** Numbers of the frames that the ends name. */
  #named(): Set<number> {
    const numbers = this.#ends.flatMap(({ message }) => {
      const { state, logSeq, artifactsSeq } = message as Partial<Result>;
      return [typeof state === 'object' ? state.seq : undefined, logSeq, artifactsSeq];
    });
    return new Set(numbers.filter((seq) => seq !== undefined));
  }

  #with(message: Pick<Result, 'state' | 'logSeq' | 'artifactsSeq'>): Omit<Delivery, 'result'> {
    const { state, logSeq, artifactsSeq } = message;
    const stateFrame = state === 'Unchanged' ? undefined : this.#frames.get(state.seq)?.frame;
    const logFrame = logSeq === undefined ? undefined : this.#frames.get(logSeq)?.frame;
    const artifacts = artifactsSeq === undefined ? undefined : this.#frames.get(artifactsSeq)?.frame;
    return {
      ...(stateFrame?.kind === 'state' ? { state: stateFrame } : {}),
      ...(artifacts?.kind === 'artifacts' ? { artifacts } : {}),
      ...(logFrame?.kind === 'log' ? { log: logFrame } : {}),
    };
  }
}
