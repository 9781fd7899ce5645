import { fieldsPayload } from '../../core/enter/frames.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Visit } from './visit.ts';

/**
 * Connections to ports of the pod. The helper gets an order and makes them by itself; it tells when bytes have moved. Connections over which
 * nothing moves leave the session idle.
 */
export class Ports {
  readonly #clock: Clock;
  #movedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  serve(visit: Visit): void {
    visit.onFrame(({ kind }) => {
      if (kind === 'moved') this.#movedAt = this.#clock.monotonic();
    });
    visit.send('order', fieldsPayload(['ports']));
  }

  /** Milliseconds since bytes moved; undefined where none have. */
  get idleMs(): number | undefined {
    return this.#movedAt === undefined ? undefined : Math.round(this.#clock.monotonic() - this.#movedAt);
  }
}
