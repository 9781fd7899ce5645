import { createHash } from 'node:crypto';

type Line = readonly [who: string, ...what: string[]];

/** What happened, line by line: virtual time, who, what. Lines are made only where somebody wants them. */
export class Trace {
  readonly #time: () => number;
  readonly #print: ((line: string) => void) | undefined;
  readonly #hash = createHash('sha256');
  readonly #wanted: boolean;

  constructor(options: { time: () => number; print?: ((line: string) => void) | undefined; digest?: boolean }) {
    this.#time = options.time;
    this.#print = options.print;
    this.#wanted = options.print !== undefined || options.digest === true;
  }

  line(make: () => Line): void {
    if (!this.#wanted) return;
    const [who, ...what] = make();
    const text = `${this.#time().toFixed(3).padStart(11)} ${who.padEnd(12)} ${what.join(' ')}`;
    this.#hash.update(text).update('\n');
    this.#print?.(text);
  }

  /** Of all lines so far; only once. */
  digest(): string {
    return this.#hash.digest('hex');
  }
}
