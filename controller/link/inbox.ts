import type { FrameOf, Result } from '../../core/frames/messages.ts';
import type { Asking, Delivery } from '../world/link-view.ts';

type Kept = FrameOf<'log'> | FrameOf<'state'> | FrameOf<'artifacts'> | FrameOf<'result'> | FrameOf<'approval'>;

/** Frames that wait for their commit; joins results and requests with their state, artifacts and log by
 * sequence number. */
export class Inbox {
  readonly #frames = new Map<number, Kept>();

  add(frame: Kept): void {
    this.#frames.set(frame.seq, frame);
  }

  /** The earliest result or request for approval, with its state and log. */
  next(): { delivery?: Delivery; asking?: Asking } {
    for (const frame of this.#frames.values()) {
      if (frame.kind === 'result') return { delivery: { result: frame, ...this.#with(frame.message) } };
      if (frame.kind === 'approval') return { asking: { request: frame, ...this.#with(frame.message) } };
    }
    return {};
  }

  /** Drops all results and requests but the last: a runner runs one turn after the other. */
  keepLast(): void {
    const ends = [...this.#frames.values()].filter(({ kind }) => kind === 'result' || kind === 'approval');
    for (const { seq } of ends.slice(0, -1)) this.#frames.delete(seq);
  }

  forget(through: number): void {
    for (const seq of [...this.#frames.keys()]) if (seq <= through) this.#frames.delete(seq);
  }

  #with(message: Pick<Result, 'state' | 'logSeq' | 'artifactsSeq'>): Omit<Delivery, 'result'> {
    const { state, logSeq, artifactsSeq } = message;
    const stateFrame = state === 'Unchanged' ? undefined : this.#frames.get(state.seq);
    const logFrame = logSeq === undefined ? undefined : this.#frames.get(logSeq);
    const artifacts = artifactsSeq === undefined ? undefined : this.#frames.get(artifactsSeq);
    return {
      ...(stateFrame?.kind === 'state' ? { state: stateFrame } : {}),
      ...(artifacts?.kind === 'artifacts' ? { artifacts } : {}),
      ...(logFrame?.kind === 'log' ? { log: logFrame } : {}),
    };
  }
}
