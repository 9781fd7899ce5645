import { formatDuration } from '../../core/resources/duration.ts';
import type { Cli } from '../cli.ts';

const SECOND_MS = 1_000;

/** Shows under the lines of a terminal for how long a turn has been running, each second. */
export class RunningTime {
  readonly #turn: string;
  readonly #cli: Pick<Cli, 'status' | 'clock'>;
  #since: number | undefined;
  #cancel: (() => void) | undefined;

  constructor(turn: string, cli: Pick<Cli, 'status' | 'clock'>) {
    this.#turn = turn;
    this.#cli = cli;
  }

  /** Begins to show the time since the first call. */
  show(): void {
    const { status, clock } = this.#cli;
    if (!status || this.#cancel) return;
    this.#since ??= clock.monotonic();
    this.#wait(status, this.#since);
  }

  /** Ends to show it, for as long as the turn does not run. */
  hide(): void {
    if (!this.#cancel) return;
    this.#cancel();
    this.#cancel = undefined;
    this.#cli.status?.('');
  }

  #wait(status: (line: string) => void, since: number): void {
    const { clock } = this.#cli;
    const passed = clock.monotonic() - since;
    this.#cancel = clock.setTimer(SECOND_MS - (passed % SECOND_MS), () => {
      const seconds = Math.floor((clock.monotonic() - since) / SECOND_MS);
      if (seconds > 0) status(`turn ${this.#turn} Running ${formatDuration(seconds * SECOND_MS)}`);
      this.#wait(status, since);
    });
  }
}
