import { createHash } from 'node:crypto';
import { TurnFailure } from '../../../core/result/failure.ts';
import { EMPTY_ARCHIVE, EMPTY_DIGEST, type PackedState } from '../../../runner/state/archive.ts';

/** Number of the last runs that a state records: it does not grow with every turn. */
const RUNS = 50;

/** A state directory in memory: the last runs that have written to it, what they have asked, and padding. */
export class StateContent {
  /** False when the state ends with the pod. */
  persistent = true;
  /** Maximum size that may be stored, bytes. */
  maxBytes = Number.POSITIVE_INFINITY;
  #runs: string[] = [];
  #questions: string[] = [];
  #bytes = 0;
  #packed: PackedState | undefined;

  /** Digest of the archive that would be stored. */
  get digest(): string {
    return this.pack().digest;
  }

  get runs(): readonly string[] {
    return this.#runs;
  }

  write(run: string, bytes: number): void {
    this.#runs = [...this.#runs, run].slice(-RUNS);
    this.#bytes = bytes;
    this.#packed = undefined;
  }

  /** Returns the number of questions of an attempt that this state records. */
  askedBy(attempt: string): number {
    return this.#questions.filter((asked) => asked === attempt).length;
  }

  ask(attempt: string, run: string, bytes: number): void {
    this.#questions.push(attempt);
    this.write(run, bytes);
  }

  pack(): PackedState {
    this.#packed ??= this.#pack();
    return this.#packed;
  }

  /** Size of the archive that would be stored, bytes. */
  get bytes(): number {
    return this.pack().bytes;
  }

  /**
   * Packs like `pack`; throws `StateTooLarge` when the archive has more than `maxBytes`. With `torn` it is an archive of two moments:
   * somebody wrote while it was read.
   */
  packWithin(maxBytes: number, torn: boolean): PackedState {
    if (this.bytes <= maxBytes) return torn ? this.#pack({ torn }) : this.pack();
    const message = `the state has ${this.bytes} bytes; at most ${maxBytes} can be stored (simulated)`;
    throw new TurnFailure('StateTooLarge', message);
  }

  unpack(archive: Buffer): void {
    const [text = ''] = archive.toString().split('\n', 1);
    const empty = { runs: [], questions: [], bytes: 0 };
    const { runs, questions, bytes } = archive.equals(EMPTY_ARCHIVE) ? empty : JSON.parse(text);
    this.#runs = runs;
    this.#questions = questions;
    this.#bytes = bytes;
    this.#packed = undefined;
  }

  #pack(more: { torn?: true } = {}): PackedState {
    if (this.#runs.length === 0 || !this.persistent) return packed(EMPTY_ARCHIVE, EMPTY_DIGEST);
    const content = { runs: this.#runs, questions: this.#questions, bytes: this.#bytes, ...more };
    const text = `${JSON.stringify(content)}\n`;
    const archive = Buffer.from(text.padEnd(this.#bytes, '.'));
    return packed(archive, createHash('sha256').update(archive).digest('hex'));
  }
}

/** Returns the last run that has written to the state in an archive. */
export function lastRun(archive: Buffer): string | undefined {
  const content = new StateContent();
  content.unpack(archive);
  return content.runs.at(-1);
}

/** Reports whether an archive is of two moments. */
export function isTorn(archive: Buffer): boolean {
  const [text = ''] = archive.toString().split('\n', 1);
  return !archive.equals(EMPTY_ARCHIVE) && JSON.parse(text).torn === true;
}

function packed(archive: Buffer, digest: string): PackedState {
  return { digest, bytes: archive.length, packed: archive, skipped: [] };
}
