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

/** Users who edit what the pods of sessions have, and restart sessions, until `end`. */
export class Restarters {
  readonly #here: Surroundings;
  readonly #everyMs: number;
  #number = 0;
  #over = false;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    this.#everyMs = surroundings.dice.skewed(500, 10_000);
    this.#next();
  }

  /** Ends the edits. Restarts that were asked for are still carried out. */
  end(): void {
    this.#over = true;
  }

  #next(): void {
    const { scheduler, dice, server, trace } = this.#here;
    scheduler.after(this.#everyMs * 2 * dice.uniform(), undefined, 'somebody who restarts sessions', () => {
      if (this.#over) return;
      const session = dice.pick(server.list(sessions).filter(({ spec }) => spec.build === undefined));
      const number = ++this.#number;
      const agent = { command: ['agent', `${number}`] };
      const restartRequest = `again-${number}`;
      const change = dice.pick([{ agent }, { restartRequest }, { agent, restartRequest }]);
      trace.line(() => ['user', 'edits', session?.metadata.name ?? 'nothing', Object.keys(change).join()]);
      if (session) void edit(server, sessions, session, change);
      this.#next();
    });
  }
}
