import { isDeepStrictEqual } from 'node:util';
import type { Decided, Question } from '../../core/frames/messages.ts';

/** Reason why a question gets no answer. */
export class UnansweredError extends Error {
  readonly code: 'TurnEnded' | 'NotAsked';
  constructor(code: UnansweredError['code'], message: string) {
    super(message);
    this.name = 'UnansweredError';
    this.code = code;
  }
}

interface Pending {
  id: string;
  question: Question;
  asked: boolean;
  /** Whoever waits for the answer; undefined once nobody does. */
  waiter: { resolve: (decided: Decided) => void; reject: (error: Error) => void } | undefined;
}

export interface QuestionsOptions {
  /** Returns a new random id. */
  newId: () => string;
  /** Sends the request to the controller. Rejects when it cannot be sent. */
  ask: (id: string, question: Question) => Promise<void>;
  /** Handler of the beginning and of the end of the wait for a decision. */
  onWaiting: (waiting: boolean) => void;
}

/**
 * Questions of a running process. One request at a time is sent; the others wait for its decision. A request whose
 * sender has gone is dropped if it was not sent yet; otherwise it stands until it is decided. The same question asked
 * again takes its place.
 */
export class Questions {
  readonly #options: QuestionsOptions;
  #pending: Pending[] = [];
  #asking: Promise<void> = Promise.resolve();
  #lastDecided: string | undefined;
  #over = false;

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** Id of the request that is sent and not decided. */
  get open(): string | undefined {
    const [head] = this.#pending;
    return head?.asked ? head.id : undefined;
  }

  /** Id of the request whose decision was delivered last. */
  get lastDecided(): string | undefined {
    return this.#lastDecided;
  }

  /** Resolves with the decision; rejects with an UnansweredError. `gone` aborts when the sender has gone. */
  ask(question: Question, gone: AbortSignal): Promise<Decided> {
    if (this.#over) return Promise.reject(ended());
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      let pending = this.#pending.find((one) => !one.waiter && isDeepStrictEqual(one.question, question));
      if (pending) pending.waiter = waiter;
      else {
        pending = { id: this.#options.newId(), question, asked: false, waiter };
        this.#pending.push(pending);
        if (this.#pending.length === 1) this.#askNext();
      }
      this.#changed();
      const mine = pending;
      gone.addEventListener('abort', () => this.#leave(mine, waiter), { once: true });
    });
  }

  /**
   * Delivers the decision to its waiter. Reports whether the request is open. A decision delivered before has no
   * effect.
   */
  decide(decided: Decided): boolean {
    if (decided.requestId === this.#lastDecided) return true;
    const [head] = this.#pending;
    if (!head?.asked || head.id !== decided.requestId) return false;
    this.#lastDecided = head.id;
    this.#pending.shift();
    head.waiter?.resolve(decided);
    this.#askNext();
    this.#changed();
    return true;
  }

  /** Ends the questions of a process that has ended: no more are sent. Resolves when no request is being sent. */
  async end(): Promise<void> {
    this.#over = true;
    const unanswered = this.#pending;
    this.#pending = [];
    for (const { waiter } of unanswered) waiter?.reject(ended());
    await this.#asking;
  }

  #leave(pending: Pending, waiter: Pending['waiter']): void {
    if (pending.waiter !== waiter) return;
    pending.waiter = undefined;
    if (pending !== this.#pending[0]) this.#pending = this.#pending.filter((one) => one !== pending);
    this.#changed();
  }

  #askNext(): void {
    const [head] = this.#pending;
    if (!head) return;
    this.#asking = this.#asking
      .then(() => (this.#over ? undefined : this.#options.ask(head.id, head.question)))
      .then(
        () => {
          head.asked = true;
        },
        (error: Error) => {
          head.waiter?.reject(new UnansweredError('NotAsked', error.message));
          if (this.#pending[0] === head) this.#pending.shift();
          this.#askNext();
          this.#changed();
        },
      );
  }

  #changed(): void {
    this.#options.onWaiting(this.#pending.some(({ waiter }) => waiter !== undefined));
  }
}

function ended(): UnansweredError {
  return new UnansweredError('TurnEnded', 'the turn ended before a decision');
}
