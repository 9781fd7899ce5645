/** Work at a given rate. */
import { setTimeout as delay } from 'node:timers/promises';
import { median } from './statistics.ts';

export interface Pace {
  perSecond: number;
  seconds: number;
}

/** Calls of `work` that a pace gives. */
export const calls = ({ perSecond, seconds }: Pace): number => Math.floor(perSecond * seconds);

/** Calls `work` at a pace, whether earlier calls have ended or not. Resolves with what they came to, in their order. */
export async function paced<T>(pace: Pace, work: (index: number) => Promise<T>): Promise<T[]> {
  const begun: Promise<T>[] = [];
  const started = performance.now();
  for (let index = 0; index < calls(pace); index++) {
    await delay(Math.max(0, started + (index * 1000) / pace.perSecond - performance.now()));
    const one = work(index);
    // A failure is told when all are begun.
    one.catch(() => {});
    begun.push(one);
  }
  return Promise.all(begun);
}

/** Medians of the first and of the second half of a series, and how many times the first the second is. */
export function halves(values: readonly number[]): { first: number; second: number; ratio: number } {
  const middle = Math.ceil(values.length / 2);
  const [first, second] = [median(values.slice(0, middle)), median(values.slice(middle))];
  return { first, second, ratio: second / first };
}
