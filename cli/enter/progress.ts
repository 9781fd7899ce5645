import type { Cli } from '../cli.ts';

const UPDATE_MS = 200;
const MB = 1e6;

/** Shows on a terminal how many bytes of something have come or gone. */
export class Progress {
  readonly #what: string;
  readonly #total: number | undefined;
  readonly #cli: Cli;
  #bytes = 0;
  #shownAt: number;

  /** `total`: bytes, where they are known. */
  constructor({ what, total }: { what: string; total?: number }, cli: Cli) {
    this.#what = what;
    this.#total = total;
    this.#cli = cli;
    this.#shownAt = cli.clock.monotonic();
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    const now = this.#cli.clock.monotonic();
    if (!this.#cli.status || now - this.#shownAt < UPDATE_MS) return;
    this.#shownAt = now;
    this.#cli.status(this.#line());
  }

  end(): void {
    this.#cli.status?.('');
  }

  #line(): string {
    const done = (this.#bytes / MB).toFixed(1);
    if (this.#total === undefined || this.#total === 0) return `${this.#what}: ${done} MB`;
    const part = Math.floor((100 * this.#bytes) / this.#total);
    return `${this.#what}: ${done} of ${(this.#total / MB).toFixed(1)} MB, ${part} %`;
  }
}

/** Passes data on, and shows its progress. */
export async function* withProgress<R>(
  data: AsyncGenerator<Buffer, R>,
  about: { what: string; total?: number },
  cli: Cli,
): AsyncGenerator<Buffer, R> {
  const progress = new Progress(about, cli);
  try {
    for (;;) {
      const { value, done } = await data.next();
      if (done) return value;
      progress.add(value.length);
      yield value;
    }
  } finally {
    progress.end();
    await data.return(undefined as never);
  }
}
