import type { CharSet } from './char-set.ts';

/** Tests a number in a set of numbers below a bound, which has one bit for each. */
export function has(set: Uint32Array, i: number): boolean {
  return (((set[i >>> 5] as number) >>> (i & 31)) & 1) === 1;
}

export function add(set: Uint32Array, i: number): void {
  set[i >>> 5] = (set[i >>> 5] as number) | (1 << (i & 31));
}

export function meet(a: Uint32Array, b: Uint32Array): boolean {
  for (let i = 0; i < a.length; i++) if ((a[i] as number) & (b[i] as number)) return true;
  return false;
}

/** Returns the smallest number from `from` on that is in both sets; -1 without one. */
export function next(a: Uint32Array, b: Uint32Array, from: number): number {
  let above = -1 << (from & 31);
  for (let word = from >>> 5; word < a.length; word++) {
    const left = (a[word] as number) & (b[word] as number) & above;
    if (left !== 0) return word * 32 + 31 - Math.clz32(left & -left);
    above = -1;
  }
  return -1;
}

function keyOf(set: Uint32Array): string {
  let key = '';
  for (const word of set) key += String.fromCharCode(word & 0xffff, word >>> 16);
  return key;
}

/** Kinds of characters: characters of one kind lead on from the same states. */
export class Kinds {
  readonly #sets: readonly (CharSet | undefined)[];
  readonly #distinct: readonly CharSet[];
  readonly #numbers = new Map<string, number>();
  readonly #members: Uint32Array[] = [];
  /** Kind by character; 0 is not known yet. */
  #known = new Uint16Array(256);

  /** `sets` holds the character set of each state that has one. */
  constructor(sets: readonly (CharSet | undefined)[]) {
    this.#sets = sets;
    this.#distinct = [...new Set(sets)].filter((set) => set !== undefined);
  }

  /** Returns the kind of a UTF-16 unit, from 1 on. */
  of(char: number): number {
    return this.#known[char] || this.#learn(char);
  }

  members(kind: number): Uint32Array {
    return this.#members[kind - 1] as Uint32Array;
  }

  #learn(char: number): number {
    if (char >= this.#known.length) {
      const all = new Uint16Array(0x10000);
      all.set(this.#known);
      this.#known = all;
    }
    const having = new Set(this.#distinct.filter((set) => set.has(char)));
    const key = this.#distinct.map((set) => Number(having.has(set))).join('');
    let kind = this.#numbers.get(key);
    if (kind === undefined) {
      const members = new Uint32Array(Math.ceil(this.#sets.length / 32));
      for (const [i, set] of this.#sets.entries()) if (set && having.has(set)) add(members, i);
      kind = this.#members.push(members);
      this.#numbers.set(key, kind);
    }
    this.#known[char] = kind;
    return kind;
  }
}

/** Set of states, with the sets that it is known to lead to. */
export class Step {
  readonly states: Uint32Array;
  /** True if the state of index 0, the end of a match, is in the set. */
  readonly ends: boolean;
  readonly to: (Step | undefined)[] = [];

  constructor(states: Uint32Array) {
    this.states = states;
    this.ends = has(states, 0);
  }
}

/** Limit of the cached sets, above which the cache is cleared: a text can lead to more sets than memory holds. */
const MAX_REMEMBERED = 2048;

/** Sets of states that one pass has reached, each created once. */
export class Steps {
  readonly #begin: Uint32Array;
  readonly #make: (from: Uint32Array, kind: number, marked: boolean) => Uint32Array;
  readonly #known = new Map<string, Step>();
  #first: Step;

  constructor(begin: Uint32Array, make: (from: Uint32Array, kind: number, marked: boolean) => Uint32Array) {
    this.#begin = begin;
    this.#make = make;
    this.#first = new Step(begin);
  }

  get first(): Step {
    return this.#first;
  }

  /** Returns the set after a character of this kind. */
  after(from: Step, kind: number, marked: boolean): Step {
    return from.to[2 * kind + Number(marked)] ?? this.learn(from, kind, marked);
  }

  learn(from: Step, kind: number, marked: boolean): Step {
    const states = this.#make(from.states, kind, marked);
    const key = keyOf(states);
    let step = this.#known.get(key);
    if (!step) {
      if (this.#known.size >= MAX_REMEMBERED) {
        this.#known.clear();
        // The first set is replaced because the old one leads to all sets that are to be freed.
        this.#first = new Step(this.#begin);
      }
      step = new Step(states);
      this.#known.set(key, step);
    }
    from.to[2 * kind + Number(marked)] = step;
    return step;
  }
}
