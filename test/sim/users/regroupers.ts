import { sessions } from '../../../core/resources/kinds.ts';
import { repeated, type Surroundings } from './repeated.ts';
import { edit } from './writes.ts';

/** Users who move sessions between concurrency groups while their turns run, until `end`. */
export class Regroupers {
  readonly #here: Surroundings;
  readonly #stop: () => void;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    this.#stop = repeated(
      surroundings,
      'somebody who moves sessions between groups',
      surroundings.dice.skewed(200, 5_000),
      () => this.#act(),
    );
  }

  end(): void {
    this.#stop();
  }

  #act(): void {
    const { dice, server, trace } = this.#here;
    const session = dice.pick(server.list(sessions).filter(({ spec }) => spec.build === undefined));
    const name = dice.pick(['group', 'others']);
    const concurrencyGroup = dice.chance(0.2) ? null : { name, limit: dice.int(1, 2) };
    trace.line(() => ['user', 'moves', session?.metadata.name ?? 'nothing', concurrencyGroup?.name ?? 'to no group']);
    if (session) void edit(server, sessions, session, { concurrencyGroup });
  }
}
