import type { Change } from '../../../local/apiserver/store/versioned.ts';
import type { ControllerCall } from '../observer.ts';
import { LEASES } from './facts.ts';

/** Terms of leaders: each acquisition of the lease begins one. */
export class Terms {
  /** Process → number of its last term, counted over all processes. */
  readonly #numbers = new Map<string, number>();
  #last = 0;
  #holder: string | undefined;
  #transitions: unknown;

  /** Returns the number of the process's last term, from 1; 0 if it never held the lease. */
  of(process: string): number {
    return this.#numbers.get(process) ?? 0;
  }

  /** Takes note of a change of the lease; returns false for a change of anything else. */
  see({ storage, type, object }: Change, call: ControllerCall | undefined): boolean {
    if (storage !== LEASES) return false;
    const { spec } = object as { spec?: { leaseTransitions?: number; holderIdentity?: string } };
    const isSame = spec?.holderIdentity === this.#holder && spec?.leaseTransitions === this.#transitions;
    this.#holder = spec?.holderIdentity;
    this.#transitions = spec?.leaseTransitions;
    if (call && type !== 'DELETED' && this.#holder && !isSame) this.#numbers.set(call.process, ++this.#last);
    return true;
  }
}
