import type { FrameOf } from '../../core/frames/messages.ts';
import type { Delivery } from './view.ts';

type Kept = FrameOf<'log'> | FrameOf<'state'> | FrameOf<'result'>;

/** Frames that wait for their commit: what belongs to a result is put together by its sequence numbers. */
export class Inbox {
  readonly #frames = new Map<number, Kept>();

  add(frame: Kept): void {
    this.#frames.set(frame.seq, frame);
  }

  /** The earliest result that is here, with its state and log. */
  delivery(): Delivery | undefined {
    for (const frame of this.#frames.values()) {
      if (frame.kind !== 'result') continue;
      const { state, logSeq } = frame.message;
      const stateFrame = state === 'Unchanged' ? undefined : this.#frames.get(state.seq);
      const logFrame = logSeq === undefined ? undefined : this.#frames.get(logSeq);
      return {
        result: frame,
        ...(stateFrame?.kind === 'state' ? { state: stateFrame } : {}),
        ...(logFrame?.kind === 'log' ? { log: logFrame } : {}),
      };
    }
    return undefined;
  }

  forget(through: number): void {
    for (const seq of [...this.#frames.keys()]) if (seq <= through) this.#frames.delete(seq);
  }
}
