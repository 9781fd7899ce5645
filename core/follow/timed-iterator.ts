import type { Clock } from '../runtime.ts';

/** An iterator whose next result can be waited for as long as wanted, and then again. */
export class TimedIterator<T> {
  readonly #iterator: AsyncIterator<T>;
  readonly #clock: Clock;
  /** The result that has been asked for and not been taken. */
  #asked: { result: Promise<IteratorResult<T>>; isSettled: boolean; wake: () => void } | undefined;

  constructor(iterator: AsyncIterator<T>, clock: Clock) {
    this.#iterator = iterator;
    this.#clock = clock;
  }

  /** Resolves to the next result, or to undefined when it has not come within `ms` milliseconds; default: without limit. */
  next(ms?: number): Promise<IteratorResult<T> | undefined> {
    return ms === undefined && !this.#asked ? this.#iterator.next() : this.#within(ms);
  }

  async return(): Promise<void> {
    await this.#iterator.return?.();
  }

  async #within(ms: number | undefined): Promise<IteratorResult<T> | undefined> {
    this.#asked ??= this.#ask();
    const asked = this.#asked;
    if (!asked.isSettled) {
      let cancel = () => {};
      await new Promise<void>((resolve) => {
        asked.wake = resolve;
        if (ms !== undefined) cancel = this.#clock.setTimer(ms, resolve);
      });
      cancel();
    }
    if (!asked.isSettled) return undefined;
    this.#asked = undefined;
    return asked.result;
  }

  #ask() {
    const asked = { result: this.#iterator.next(), isSettled: false, wake: () => {} };
    const settle = () => {
      asked.isSettled = true;
      asked.wake();
    };
    // No race of the promises: each race would leave a reaction at one that waits for long.
    asked.result.then(settle, settle);
    return asked;
  }
}
