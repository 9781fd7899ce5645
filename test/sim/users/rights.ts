import { repeated, type Surroundings } from './repeated.ts';
import { NAMESPACES } from './users.ts';

/** Administrators who take the controllers' rights in a namespace and give them again, until `end`. */
export class Administrators {
  readonly #here: Surroundings;
  readonly #stop: () => void;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    this.#stop = repeated(surroundings, 'somebody who takes rights', surroundings.dice.skewed(5_000, 30_000), () =>
      this.#act(),
    );
  }

  /** Gives all rights that were taken. */
  end(): void {
    this.#stop();
    for (const namespace of NAMESPACES) this.#here.server.setRights(namespace, true);
  }

  #act(): void {
    const { scheduler, dice, server, trace } = this.#here;
    const namespace = dice.pick(NAMESPACES);
    trace.line(() => ['user', 'takes the rights in', namespace]);
    server.setRights(namespace, false);
    // A namespace counts as closed after half a minute without rights.
    const ms = dice.chance(0.4) ? dice.skewed(500, 20_000) : dice.int(30_000, 90_000);
    scheduler.after(ms, undefined, 'somebody who gives rights', () => {
      trace.line(() => ['user', 'gives the rights in', namespace]);
      server.setRights(namespace, true);
    });
  }
}
