import type { Random } from '../../core/runtime.ts';
import { seededRandom } from '../support/random.ts';

/** Random draws for one purpose. Each purpose has its own stream, so that one more draw changes no other purpose. */
export class Dice implements Random {
  readonly #random: Random;
  readonly #seed: number;

  constructor(seed: number, purpose: string) {
    let hash = seed >>> 0;
    for (const letter of purpose) hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0;
    this.#seed = hash;
    this.#random = seededRandom(hash);
  }

  /** Returns an independent stream, derived from this one's seed and the purpose. */
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

  /** Returns a whole number between `low` and `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.#random.uniform() * (high - low + 1));
  }

  /** Returns a whole number, often near `low` and rarely near `high`. */
  skewed(low: number, high: number): number {
    return Math.round(low * (high / low) ** (this.#random.uniform() ** 2));
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random.uniform() * items.length)] as T;
  }

  /** Picks an entry with a probability by its weight; undefined when all weights are 0. */
  weighted<T extends { weight: number }>(entries: readonly T[]): T | undefined {
    let left = this.#random.uniform() * entries.reduce((sum, { weight }) => sum + weight, 0);
    return entries.find(({ weight }) => {
      left -= weight;
      return left < 0;
    });
  }
}
