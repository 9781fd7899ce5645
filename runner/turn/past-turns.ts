import type { ResumeTurn, StartTurn } from '../../core/frames/messages.ts';
import { segmentOf } from './turn.ts';

/** Limit of the turns that are remembered one by one. */
const MAX_KNOWN = 1024;

interface Past {
  index: number;
  /** Highest attempt that ended; 0 for none. */
  ended: number;
  /** Segments that ended with a question. */
  asked: Set<string>;
}

/**
 * Remembers which turns ran here, so that a late request cannot run one again. Turns run in the order of their index,
 * so only the highest index is kept of turns that are no longer remembered one by one.
 */
export class PastTurns {
  readonly #known = new Map<string, Past>();
  readonly #most: number;
  #forgotten = -1;

  constructor(most = MAX_KNOWN) {
    this.#most = most;
  }

  /** Records that an attempt has ended. */
  ended({ turn, index, attempt }: StartTurn): void {
    this.#put(turn, { index, ended: attempt, asked: new Set() });
  }

  /** Records that a segment of an attempt has ended with a question: the turn continues with the decision. */
  asked(message: StartTurn | ResumeTurn): void {
    const { turn, index } = message;
    const past = this.#known.get(turn);
    const asked = new Set(past?.asked).add(segmentOf(message));
    this.#put(turn, { index, ended: past?.ended ?? 0, asked });
  }

  /** Returns the reason why a segment must not run; undefined where it may. */
  problem(message: StartTurn | ResumeTurn): string | undefined {
    const { turn, index, attempt } = message;
    const past = this.#known.get(turn);
    if (!past) return index <= this.#forgotten ? 'turns after it have ended before' : undefined;
    if (past.asked.has(segmentOf(message))) return 'it has asked before, and waits for the decision';
    return past.ended >= attempt ? `attempt ${attempt} has ended before` : undefined;
  }

  hasEnded(turn: string): boolean {
    return (this.#known.get(turn)?.ended ?? 0) > 0;
  }

  #put(turn: string, past: Past): void {
    // The entry moves to the end: the first one is the one added longest ago.
    this.#known.delete(turn);
    this.#known.set(turn, past);
    if (this.#known.size <= this.#most) return;
    for (const [first, { index }] of this.#known) {
      this.#known.delete(first);
      this.#forgotten = Math.max(this.#forgotten, index);
      break;
    }
  }
}
