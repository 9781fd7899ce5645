import { pass, type Stage } from '../chaos.ts';
import { repeated } from './repeated.ts';

/** Hours that pass unnoticed, again and again, until `end`: what is stored becomes old, and sweeps come to it. */
export class Ages {
  readonly #stage: Stage;
  readonly #stop: () => void;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#stop = repeated(stage, 'hours pass', stage.dice.skewed(3_000, 20_000), () => this.#act());
  }

  end(): void {
    this.#stop();
  }

  #act(): void {
    const { dice, trace } = this.#stage;
    const ms = dice.skewed(600_000, 3 * 3_600_000);
    trace.line(() => ['world', 'hours pass', `${(ms / 3_600_000).toFixed(1)} h`]);
    pass(ms, this.#stage);
  }
}
