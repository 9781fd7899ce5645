/**
 * Finds the matches of a pattern in two passes over the text. The forward pass follows all matches that may have begun;
 * the backward pass starts where one of them ended and follows all states that lead there. A character lies in a match
 * where the two passes meet. Each set of states that was reached is cached with the sets that it leads to. So a
 * character costs one step per pass with any number of overlapping matches; if a text leads to new sets all the time, a step examines
 * each state once.
 */

import type { CharSet } from './char-set.ts';
import { add, has, Kinds, meet, next, type Step, Steps } from './steps.ts';

/** Limit of the states after repeats are expanded. */
const MAX_STATES = 4096;

/** Range of a text: from the first character to behind the last. */
export interface Span {
  start: number;
  end: number;
}

/** Tree of a pattern. */
export type Node =
  | { type: 'set'; set: CharSet }
  | { type: 'sequence'; parts: Node[] }
  | { type: 'choice'; parts: Node[] }
  | { type: 'repeat'; part: Node; least: number; most: number };

/** Error in a pattern: the problem, its place, and what to do. */
export class PatternError extends Error {
  readonly code = 'PatternInvalid';
  constructor(message: string) {
    super(message);
    this.name = 'PatternError';
  }
}

/** State that goes on to `next` by a character of the set, or to all of `to` without a character. */
type State = { set: CharSet; next: number } | { to: number[] };

const END = 0;

/** Characters per block, which is read forwards and then backwards: so many sets of states are held at once. */
const BLOCK_CHARS = 4096;

export class Automaton {
  /** States of the automaton; each leads only to states of lower index. */
  readonly #states: State[] = [{ to: [] }];
  #size = 0;
  readonly #begin: number;
  readonly #longest: number;
  /** Next state of each state by a character of its set. */
  readonly #next: Int32Array;
  /** Edges that need no character, as pairs of from and to; those from lower states first. */
  readonly #edges: Int32Array;
  readonly #kinds: Kinds;
  /** States reached before a character, and whether a match may begin there. */
  readonly #forward: Steps;
  /** States that lead by this character to the end of a match, and whether a match ends behind it. */
  readonly #backward: Steps;

  /** `longest`: UTF-16 units of the longest match. */
  constructor(node: Node, longest: number) {
    this.#longest = longest;
    this.#begin = this.#add(node, END);
    this.#next = Int32Array.from(this.#states, (state) => ('next' in state ? state.next : END));
    this.#edges = Int32Array.from(
      this.#states.flatMap((state, from) => ('to' in state ? state.to.flatMap((to) => [from, to]) : [])),
    );
    this.#kinds = new Kinds(this.#states.map((state) => ('set' in state ? state.set : undefined)));
    const none = new Uint32Array(Math.ceil(this.#states.length / 32));
    this.#forward = new Steps(this.#reached(none, none, true), (from, kind, begins) =>
      this.#reached(from, this.#kinds.members(kind), begins),
    );
    this.#backward = new Steps(none, (from, kind, ends) => this.#leading(from, this.#kinds.members(kind), ends));
  }

  /** Returns all ranges of matches that begin before `before`, in order and disjoint. */
  cover(text: string, before: number): Span[] {
    const spans: Span[] = [];
    const stop = Math.min(text.length, before + this.#longest - 1);
    let step = this.#forward.first;
    const reached = [step];
    for (let from = 0; from < stop; from += BLOCK_CHARS) {
      const ahead = Math.min(stop, from + BLOCK_CHARS + this.#longest);
      for (let at = from + reached.length - 1; at < ahead; at++) {
        step = this.#forward.after(step, this.#kinds.of(text.charCodeAt(at)), at + 1 < before);
        reached.push(step);
      }
      if (reached.some(({ ends }) => ends)) this.#addSpans(spans, text, from, reached);
      reached.splice(0, BLOCK_CHARS);
    }
    return spans;
  }

  /** Adds the ranges of one block; `reached` extends beyond it by the longest match. */
  #addSpans(spans: Span[], text: string, from: number, reached: readonly Step[]): void {
    const inside = new Uint8Array(reached.length);
    let leading = this.#backward.first;
    for (let i = reached.length - 2; i >= 0; i--) {
      const { ends } = reached[i + 1] as Step;
      leading = this.#backward.after(leading, this.#kinds.of(text.charCodeAt(from + i)), ends);
      if (meet((reached[i] as Step).states, leading.states)) inside[i] = 1;
    }
    for (let i = 0; i < BLOCK_CHARS; i++) {
      const last = spans.at(-1);
      if (!inside[i]) continue;
      if (last?.end === from + i) last.end += 1;
      else spans.push({ start: from + i, end: from + i + 1 });
    }
  }

  #reached(from: Uint32Array, members: Uint32Array, begins: boolean): Uint32Array {
    const after = new Uint32Array(from.length);
    if (begins) add(after, this.#begin);
    for (let i = next(from, members, 0); i >= 0; i = next(from, members, i + 1)) add(after, this.#next[i] as number);
    const edges = this.#edges;
    for (let i = edges.length - 2; i >= 0; i -= 2) {
      if (has(after, edges[i] as number)) add(after, edges[i + 1] as number);
    }
    return after;
  }

  #leading(from: Uint32Array, members: Uint32Array, ends: boolean): Uint32Array {
    const behind = from.slice();
    if (ends) add(behind, END);
    const edges = this.#edges;
    for (let i = 0; i < edges.length; i += 2) {
      if (has(behind, edges[i + 1] as number)) add(behind, edges[i] as number);
    }
    const before = new Uint32Array(from.length);
    for (let i = next(members, members, 0); i >= 0; i = next(members, members, i + 1)) {
      if (has(behind, this.#next[i] as number)) add(before, i);
    }
    return before;
  }

  /** Adds the states of `node`, followed by `next`, and returns the first of them. */
  #add(node: Node, next: number): number {
    this.#size += 1;
    if (this.#size > MAX_STATES) throw new PatternError('it is too large; make its repeats smaller');
    if (node.type === 'set') return this.#states.push({ set: node.set, next }) - 1;
    if (node.type === 'choice') {
      const to = node.parts.map((part) => this.#add(part, next));
      return this.#states.push({ to }) - 1;
    }
    if (node.type === 'sequence') {
      let begin = next;
      for (const part of node.parts.toReversed()) begin = this.#add(part, begin);
      return begin;
    }
    let begin = next;
    for (let i = node.most; i > 0; i--) {
      const part = this.#add(node.part, begin);
      begin = i > node.least ? this.#states.push({ to: [part, next] }) - 1 : part;
    }
    return begin;
  }
}
