import type { Block } from '../text/markers.ts';
import { TurnFailure } from './failure.ts';

interface Facts {
  /** Stream with the result, if it has one, and the bytes in it. */
  stream: 'stdout' | 'log';
  bytes: number;
  /** Clause about what stands in place of a result; undefined if nothing does. */
  found?: string | undefined;
  /** Sentence that says how to give a result. */
  advice: string;
}

/** Facts about a program that ended without a result. */
export class NoResult {
  readonly #facts: Facts;

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  get found(): string | undefined {
    return this.#facts.found;
  }

  /** `how` describes the end of the program, for example `exit code 0`; undefined where it is not known. */
  failure(how: string | undefined): TurnFailure {
    const { stream, bytes, found, advice } = this.#facts;
    const ended = how === undefined ? 'ended' : `ended with ${how}`;
    const size = bytes === 0 ? 'is empty' : `has ${bytes} ${bytes === 1 ? 'byte' : 'bytes'}`;
    const and = found === undefined ? '' : `, and ${found}`;
    return new TurnFailure(
      'MissingEnvelope',
      `the program ${ended} without a result; its ${stream} ${size}${and}`,
      advice,
    );
  }
}

/** Returns the clause about markers that give no result; undefined if none was printed. */
export function foundInstead(block: Block & { type: 'None' }, other: OtherMarker): string | undefined {
  if (block.seen === 'Start') return 'the start marker has no end marker after it';
  if (block.seen === 'End') return 'the end marker has no start marker before it';
  if (!other.isFound) return undefined;
  return 'BERTH_RESULT_START is in it, but not this turn’s start marker, which is the value of the variable BERTH_RESULT_START_MARKER';
}

/** Text that every start marker contains, also one of another turn and the name of its variable. */
const SOME_START = Buffer.from('BERTH_RESULT_START');

/** Looks for a start marker that does not count, in text that arrives in pieces. */
export class OtherMarker {
  #carry: Buffer = Buffer.alloc(0);
  #isFound = false;

  push(bytes: Buffer): void {
    if (this.#isFound) return;
    const text = this.#carry.length ? Buffer.concat([this.#carry, bytes]) : bytes;
    this.#isFound = text.includes(SOME_START);
    // The bytes are copied: a slice would keep the whole piece in memory.
    this.#carry = Buffer.from(text.subarray(Math.max(0, text.length - SOME_START.length + 1)));
  }

  get isFound(): boolean {
    return this.#isFound;
  }
}
