import { sessions } from '../../../core/resources/kinds.ts';
import type { SimServer } from '../api/server.ts';
import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';
import { edit } from './writes.ts';

interface Surroundings {
  scheduler: Scheduler;
  server: SimServer;
  trace: Trace;
  dice: Dice;
}

/** Users who move sessions between concurrency groups while their turns run, until `end`. */
export class Regroupers {
  readonly #here: Surroundings;
  readonly #everyMs: number;
  #over = false;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    this.#everyMs = surroundings.dice.skewed(200, 5_000);
    this.#next();
  }

  end(): void {
    this.#over = true;
  }

  #next(): void {
    const { scheduler, dice, server, trace } = this.#here;
    scheduler.after(this.#everyMs * 2 * dice.uniform(), undefined, 'somebody who moves sessions between groups', () => {
      if (this.#over) return;
      const session = dice.pick(server.list(sessions).filter(({ spec }) => spec.build === undefined));
      const name = dice.pick(['group', 'others']);
      const concurrencyGroup = dice.chance(0.2) ? null : { name, limit: dice.int(1, 2) };
      trace.line(() => ['user', 'moves', session?.metadata.name ?? 'nothing', concurrencyGroup?.name ?? 'to no group']);
      if (session) void edit(server, sessions, session, { concurrencyGroup });
      this.#next();
    });
  }
}
