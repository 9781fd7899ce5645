import type { SimServer } from '../api/server.ts';
import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';
import { NAMESPACES } from './users.ts';

interface Surroundings {
  scheduler: Scheduler;
  server: SimServer;
  trace: Trace;
  dice: Dice;
}

/** Administrators who take the controllers' rights in a namespace and give them again, until `end`. */
export class Administrators {
  readonly #here: Surroundings;
  readonly #everyMs: number;
  #over = false;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    this.#everyMs = surroundings.dice.skewed(5_000, 30_000);
    this.#next();
  }

  /** Gives all rights that were taken. */
  end(): void {
    this.#over = true;
    for (const namespace of NAMESPACES) this.#here.server.setRights(namespace, true);
  }

  #next(): void {
    const { scheduler, dice, server, trace } = this.#here;
    scheduler.after(this.#everyMs * 2 * dice.uniform(), undefined, 'somebody who takes rights', () => {
      if (this.#over) return;
      const namespace = dice.pick(NAMESPACES);
      trace.line(() => ['user', 'takes the rights in', namespace]);
      server.setRights(namespace, false);
      // A namespace counts as closed after half a minute without rights.
      const ms = dice.chance(0.4) ? dice.skewed(500, 20_000) : dice.int(30_000, 90_000);
      scheduler.after(ms, undefined, 'somebody who gives rights', () => {
        trace.line(() => ['user', 'gives the rights in', namespace]);
        server.setRights(namespace, true);
      });
      this.#next();
    });
  }
}
