import { sessions, turns } from '../../../core/resources/kinds.ts';
import { repeated, type Surroundings } from './repeated.ts';
import { aPlan, someSession } from './specs.ts';
import type { Users } from './users.ts';
import { create, nothing } from './writes.ts';

interface UsersAround extends Surroundings {
  /** Users whose sessions these are; what a new session is like is drawn with `dice`. */
  users: Users;
}

/** Users who delete a session and make another under its name at once, often of another class, until `end`. */
export class Remakers {
  readonly #here: UsersAround;
  readonly #stop: () => void;
  #number = 0;

  constructor(surroundings: UsersAround) {
    this.#here = surroundings;
    this.#stop = repeated(
      surroundings,
      'somebody who makes sessions again',
      surroundings.dice.skewed(1_000, 10_000),
      () => this.#act(),
    );
  }

  end(): void {
    this.#stop();
  }

  #act(): void {
    const { dice, server, trace } = this.#here;
    const session = dice.pick(server.list(sessions).filter(({ spec }) => spec.build === undefined));
    trace.line(() => ['user', 'makes again', session?.metadata.name ?? 'nothing']);
    if (session) void this.#remake(session.metadata as { name: string; namespace: string });
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
