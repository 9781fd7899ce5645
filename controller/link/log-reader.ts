import { type Clock, delay } from '../../core/runtime.ts';

/**
 * Reads the logs of ended containers one after the other, over all links. So the printed text of pods costs the controller a
 * share of its time that does not grow with the number of pods.
 */
export class LogReader {
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs the work once all earlier work has ended. The work calls `pause` often, so that others have their turn. */
  read<R>(work: (pause: () => Promise<void>) => Promise<R>): Promise<R> {
    const done = this.#last.then(() => work(() => delay(this.#clock, 0)));
    this.#last = done.catch(() => {});
    return done;
  }
}
