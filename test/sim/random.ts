import type { Random } from '../../core/runtime.ts';
import { seededRandom } from '../support/random.ts';

/** Draws of one purpose. Several purposes have streams of their own, so that one more draw here changes nothing there. */
export class Dice implements Random {
  readonly #random: Random;
  readonly #seed: number;

  constructor(seed: number, purpose: string) {
    let hash = seed >>> 0;
    for (const letter of purpose) hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0;
    this.#seed = hash;
    this.#random = seededRandom(hash);
  }

  /** A stream of its own, named beside this one. */
  stream(purpose: string): Dice {
    return new Dice(this.#seed, purpose);
  }

  uniform(): number {
    return this.#random.uniform();
  }

  bytes(length: number): Buffer {
    return this.#random.bytes(length);
  }

  chance(probability: number): boolean {
    return this.#random.uniform() < probability;
  }

  /** A whole number, both ends included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.#random.uniform() * (high - low + 1));
  }

  /** Often near `low`, now and then near `high`; whole. */
  skewed(low: number, high: number): number {
    return Math.round(low * (high / low) ** (this.#random.uniform() ** 2));
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random.uniform() * items.length)] as T;
  }

  /** One of the entries, as likely as its weight says; undefined when all weigh nothing. */
  weighted<T extends { weight: number }>(entries: readonly T[]): T | undefined {
    let left = this.#random.uniform() * entries.reduce((sum, { weight }) => sum + weight, 0);
    return entries.find(({ weight }) => {
      left -= weight;
      return left < 0;
    });
  }
}
