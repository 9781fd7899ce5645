import type { Observer } from '../observer.ts';
import type { Facts } from './facts.ts';

/** Something that must hold at every moment, or once everything has settled. Says so with `facts.fail`. */
interface Invariant extends Partial<Observer> {
  /** Once nothing is left to do. */
  settled?(): void;
}

export type MakeInvariant = (facts: Facts, limits: Limits) => Invariant;

/** What the installation promises. */
export interface Limits {
  maxRunning: number | undefined;
}
