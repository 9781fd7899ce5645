import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';

type Line = readonly [who: string, ...what: string[]];

/**
 * Events line by line: virtual time, who, what. Lines are built only when they are printed or hashed. The digest covers
 * events, written objects and what the controllers tell outside of them (commits in the log, measurements, Events), and no other
 * log message, so that a change of a message does not change it.
 */
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
    const text = this.#text(make());
    this.#hash.update(text).update('\n');
    this.#print?.(text);
  }

  /** Prints a line that is not hashed. */
  log(make: () => Line): void {
    this.#print?.(this.#text(make()));
  }

  /** Hashes an object that is not printed. The order of its keys does not matter. */
  object(value: object): void {
    if (this.#wanted) this.#hash.update(canonicalJson(value)).update('\n');
  }

  #text([who, ...what]: Line): string {
    return `${this.#time().toFixed(3).padStart(11)} ${who.padEnd(12)} ${what.join(' ')}`;
  }

  /** Returns the sha256 of everything hashed so far, hex; callable once. */
  digest(): string {
    return this.#hash.digest('hex');
  }
}
