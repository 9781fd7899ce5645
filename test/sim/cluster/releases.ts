import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';
import type { Replica } from './controllers.ts';
import { PROTOCOLS } from './runner-image.ts';

interface Surroundings {
  scheduler: Scheduler;
  dice: Dice;
  trace: Trace;
  replicas: readonly Replica[];
}

/** Upgrades and rollbacks, until `end`: one replica after the other ends and starts again as another release. */
export class Releases {
  readonly #here: Surroundings;
  readonly #everyMs: number;
  /** Protocol versions of the releases. */
  readonly #drawn: readonly number[];
  #over = false;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    const { dice } = surroundings;
    this.#everyMs = dice.skewed(2000, 20_000);
    this.#drawn = dice.chance(0.5) ? PROTOCOLS : [PROTOCOLS[0], PROTOCOLS[2]];
    this.#next();
  }

  /** Has all replicas be of the last release. */
  end(): void {
    this.#over = true;
    for (const replica of this.#here.replicas) if (replica.isOfAnotherRelease) replica.stop();
  }

  #next(): void {
    const { scheduler, dice, trace, replicas } = this.#here;
    scheduler.after(this.#everyMs * (0.2 + 1.6 * dice.uniform()), undefined, 'another release', () => {
      if (this.#over) return;
      const protocol = dice.pick(this.#drawn.filter((one) => one !== replicas[0]?.protocol));
      trace.line(() => ['chaos', `a release of protocol ${protocol} is installed`]);
      for (const replica of replicas) {
        replica.protocol = protocol;
        const end = () => {
          if (!replica.isOfAnotherRelease) return;
          if (dice.chance(0.8)) replica.stop();
          else replica.kill();
        };
        scheduler.after(dice.skewed(10, 5000), undefined, `${replica.name} is replaced`, end);
      }
      this.#next();
    });
  }
}
