import { sessions, turns } from '../../../core/resources/kinds.ts';
import type { SimServer } from '../api/server.ts';
import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';
import { aPlan, someSession } from './specs.ts';
import type { Users } from './users.ts';
import { create, nothing } from './writes.ts';

interface Surroundings {
  scheduler: Scheduler;
  server: SimServer;
  trace: Trace;
  dice: Dice;
  /** Users whose sessions these are; what a new session is like is drawn with `dice`. */
  users: Users;
}

/** Users who delete a session and make another under its name at once, often of another class, until `end`. */
export class Remakers {
  readonly #here: Surroundings;
  readonly #everyMs: number;
  #number = 0;
  #over = false;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    this.#everyMs = surroundings.dice.skewed(1_000, 10_000);
    this.#next();
  }

  end(): void {
    this.#over = true;
  }

  #next(): void {
    const { scheduler, dice, server, trace } = this.#here;
    scheduler.after(this.#everyMs * 2 * dice.uniform(), undefined, 'somebody who makes sessions again', () => {
      if (this.#over) return;
      const session = dice.pick(server.list(sessions).filter(({ spec }) => spec.build === undefined));
      trace.line(() => ['user', 'makes again', session?.metadata.name ?? 'nothing']);
      if (session) void this.#remake(session.metadata as { name: string; namespace: string });
      this.#next();
    });
  }

  async #remake({ name, namespace }: { name: string; namespace: string }): Promise<void> {
    const { dice, server, users } = this.#here;
    const number = ++this.#number;
    const others = { ...users, dice };
    const spec = someSession(others, number);
    const input = aPlan(others);
    // The turn comes before the session, with it, or not at all.
    const gives = dice.pick(['before', 'after', 'not']);
    const give = () => create(server, turns, namespace, `again-${number}`, { session: name, input });
    await server.admin.delete(sessions, { namespace, name }).catch(nothing);
    if (gives === 'before') await give();
    await create(server, sessions, namespace, name, spec);
    if (gives === 'after') await give();
  }
}
