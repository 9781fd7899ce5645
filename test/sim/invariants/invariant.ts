import type { Observer } from '../observer.ts';
import type { Facts } from './facts.ts';

/** A condition that must hold at every moment, or once everything has settled. `facts.fail` reports a violation. */
interface Invariant extends Partial<Observer> {
  /** Called once nothing is left to do. */
  settled?(): void;
}

export type MakeInvariant = (facts: Facts, limits: Limits) => Invariant;

/** Limits of the installation. */
export interface Limits {
  maxRunning: number | undefined;
  nodeGraceSeconds: number;
}
