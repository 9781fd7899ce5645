import { pass, type Stage } from '../chaos.ts';

/** Hours that pass unnoticed, again and again, until `end`: what is stored becomes old, and sweeps come to it. */
export class Ages {
  readonly #stage: Stage;
  readonly #everyMs: number;
  #over = false;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#everyMs = stage.dice.skewed(3_000, 20_000);
    this.#next();
  }

  end(): void {
    this.#over = true;
  }

  #next(): void {
    const { scheduler, dice, trace } = this.#stage;
    scheduler.after(this.#everyMs * 2 * dice.uniform(), undefined, 'hours pass', () => {
      if (this.#over) return;
      const ms = dice.skewed(600_000, 3 * 3_600_000);
      trace.line(() => ['world', 'hours pass', `${(ms / 3_600_000).toFixed(1)} h`]);
      pass(ms, this.#stage);
      this.#next();
    });
  }
}
