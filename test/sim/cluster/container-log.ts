import type { Scheduler } from '../scheduler.ts';

/** A line of a log with its line feed, and when it was whole, virtual milliseconds. */
export interface StampedLine {
  at: number;
  text: string;
}

/** What a container has printed, as its node keeps it. */
export class ContainerLog {
  readonly #scheduler: Pick<Scheduler, 'now'>;
  readonly #texts: { at: number; text: string }[] = [];
  /** Those who are told of each change. */
  readonly #readers = new Set<() => void>();
  /** Lines of the first `#split` texts, and the beginning of the line that goes on. */
  #lines: StampedLine[] = [];
  #rest = '';
  #split = 0;

  constructor(scheduler: Pick<Scheduler, 'now'>) {
    this.#scheduler = scheduler;
  }

  /** Number of the texts. */
  get length(): number {
    return this.#texts.length;
  }

  /** Everything that is kept. */
  get whole(): string {
    return this.#texts.map(({ text }) => text).join('');
  }

  /** The whole lines that are kept, oldest first. */
  get lines(): readonly StampedLine[] {
    for (const { at, text } of this.#texts.slice(this.#split)) {
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop() as string;
      for (const line of lines) this.#lines.push({ at, text: `${line}\n` });
    }
    this.#split = this.#texts.length;
    return this.#lines;
  }

  push(text: string): void {
    this.#texts.push({ at: this.#scheduler.now, text });
    this.#tell();
  }

  /** Reports whether one of these texts is kept. */
  hasOneOf(texts: ReadonlySet<string>): boolean {
    return this.#texts.some(({ text }) => texts.has(text));
  }

  /** Loses the texts from this number on. */
  cut(from: number): void {
    this.#texts.length = from;
    [this.#lines, this.#rest, this.#split] = [[], '', 0];
  }

  /** Calls `changed` after each text, and when the container has ended; returns the function that cancels this. */
  onChange(changed: () => void): () => void {
    this.#readers.add(changed);
    return () => this.#readers.delete(changed);
  }

  ended(): void {
    this.#tell();
  }

  #tell(): void {
    for (const changed of [...this.#readers]) changed();
  }
}
