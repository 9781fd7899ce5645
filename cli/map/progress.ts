import { formatDuration } from '../../core/resources/duration.ts';
import type { Cli } from '../cli.ts';

/** Interval of lines where stderr is no terminal, milliseconds. */
const EVERY_MS = 10_000;

/** Progress of a map on stderr: one line that changes on a terminal, otherwise a line every ten seconds. */
export class Progress {
  readonly #cli: Pick<Cli, 'say' | 'status' | 'clock'>;
  readonly #name: string;
  readonly #total: number;
  readonly #start: number;
  #saidAt: number;
  #running = 0;
  succeeded = 0;
  failed = 0;

  constructor(name: string, total: number, cli: Pick<Cli, 'say' | 'status' | 'clock'>) {
    this.#cli = cli;
    this.#name = name;
    this.#total = total;
    this.#start = cli.clock.monotonic();
    this.#saidAt = this.#start;
  }

  get done(): number {
    return this.succeeded + this.failed;
  }

  begin(): void {
    this.#running++;
    this.#show();
  }

  end(): void {
    this.#running--;
  }

  /** Counts a result. */
  count(isSuccess: boolean): void {
    if (isSuccess) this.succeeded++;
    else this.failed++;
    this.#show();
  }

  /** Removes the line that changes, so that something else can be printed. */
  clear(): void {
    this.#cli.status?.('');
  }

  /** Prints the last line. */
  finish(): void {
    this.clear();
    this.#cli.say(this.#line());
  }

  #show(): void {
    const now = this.#cli.clock.monotonic();
    if (this.#cli.status) this.#cli.status(this.#line());
    else if (now - this.#saidAt >= EVERY_MS) {
      this.#saidAt = now;
      this.#cli.say(this.#line());
    }
  }

  #line(): string {
    const took = Math.floor((this.#cli.clock.monotonic() - this.#start) / 1000) * 1000;
    const counts = [
      `${this.done} of ${this.#total} done`,
      ...(this.failed > 0 ? [`${this.failed} failed`] : []),
      ...(this.#running > 0 ? [`${this.#running} running`] : []),
    ];
    return `${this.#name}: ${counts.join(', ')}, ${took === 0 ? '0s' : formatDuration(took)}`;
  }
}
