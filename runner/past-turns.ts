import type { ResumeTurn, StartTurn } from '../core/frames/messages.ts';
import { legOf } from './turn.ts';

/** So many turns are known one by one. */
const MAX_KNOWN = 1024;

interface Past {
  index: number;
  /** The highest attempt that ended; 0 for none. */
  ended: number;
  /** Legs that ended by asking. */
  asked: Set<string>;
}

/**
 * What has run here and is not to run again, whoever asks for it how late. Turns run in the order of their index: of those
 * that are not known one by one any more only the highest index is kept.
 */
export class PastTurns {
  readonly #known = new Map<string, Past>();
  readonly #most: number;
  #forgotten = -1;

  constructor(most = MAX_KNOWN) {
    this.#most = most;
  }

  /** An attempt has ended. */
  ended({ turn, index, attempt }: StartTurn): void {
    this.#put(turn, { index, ended: attempt, asked: new Set() });
  }

  /** A leg of an attempt has ended by asking: the turn goes on with the decision. */
  asked(message: StartTurn | ResumeTurn): void {
    const { turn, index } = message;
    const past = this.#known.get(turn);
    const asked = new Set(past?.asked).add(legOf(message));
    this.#put(turn, { index, ended: past?.ended ?? 0, asked });
  }

  /** Why a leg is not to run; undefined where it may. */
  problem(message: StartTurn | ResumeTurn): string | undefined {
    const { turn, index, attempt } = message;
    const past = this.#known.get(turn);
    if (!past) return index <= this.#forgotten ? 'turns after it have ended before' : undefined;
    if (past.asked.has(legOf(message))) return 'it has asked before, and waits for the decision';
    return past.ended >= attempt ? `attempt ${attempt} has ended before` : undefined;
  }

  hasEnded(turn: string): boolean {
    return (this.#known.get(turn)?.ended ?? 0) > 0;
  }

  #put(turn: string, past: Past): void {
    // Behind all others: the first is the one that was put longest ago.
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
