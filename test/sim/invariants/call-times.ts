import type { StoredSession } from '../../../core/resources/kinds.ts';
import type { ControllerCall } from '../observer.ts';
import type { Facts } from './facts.ts';

/** Time that a controller takes from its decision to a write for a session, without the calls in between. */
const DECIDED_MS = 1000;

/** When the controllers' calls were sent and answered, virtual milliseconds. */
export class CallTimes {
  readonly #facts: Facts;
  readonly #calls = new Map<string, Map<ControllerCall, { from: number; to: number }>>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  sent(call: ControllerCall): void {
    const own = this.#calls.get(call.process) ?? new Map();
    this.#calls.set(call.process, own.set(call, { from: this.#facts.kubelets.now, to: Number.POSITIVE_INFINITY }));
  }

  answered(call: ControllerCall): void {
    const one = this.#calls.get(call.process)?.get(call);
    if (one) one.to = this.#facts.kubelets.now;
  }

  /** Returns the longest time since `since` that the decision behind a call for the session can have been made before it. */
  decidedWithin({ process }: ControllerCall, { metadata }: StoredSession, since: number): number {
    const { now } = this.#facts.kubelets;
    const names = new Set([metadata.name, ...this.#facts.turnsOf(metadata.uid).map((turn) => turn.metadata.name)]);
    const isOf = ({ name = '' }: ControllerCall) => names.has(name) || name.includes(metadata.uid);
    let [took, until] = [DECIDED_MS, since];
    for (const [call, { from, to }] of this.#calls.get(process) ?? []) {
      if (!isOf(call)) continue;
      took += Math.max(0, Math.min(to, now) - Math.max(from, until));
      until = Math.max(until, Math.min(to, now));
    }
    return took;
  }
}
