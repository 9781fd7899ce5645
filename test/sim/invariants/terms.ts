import type { Change } from '../../../local/apiserver/store/versioned.ts';
import type { ControllerCall } from '../observer.ts';
import { type Facts, LEASES } from './facts.ts';

/** Terms of leaders: each acquisition of the lease begins one. */
export class Terms {
  readonly #facts: Pick<Facts, 'kubelets'>;
  /** Process → its last term: the number, counted over all processes, and the beginning, virtual milliseconds. */
  readonly #terms = new Map<string, { number: number; since: number }>();
  #last = 0;
  #holder: string | undefined;
  #transitions: unknown;

  constructor(facts: Pick<Facts, 'kubelets'>) {
    this.#facts = facts;
  }

  /** Returns the number of the process's last term, from 1; 0 if it never held the lease. */
  of(process: string): number {
    return this.#terms.get(process)?.number ?? 0;
  }

  /** Returns when the process's last term began, virtual milliseconds; 0 if it never held the lease. */
  since(process: string): number {
    return this.#terms.get(process)?.since ?? 0;
  }

  /** Reports whether another term has begun since the process's last one: what it decides has no effect any more. */
  isOver(process: string): boolean {
    return this.of(process) < this.#last;
  }

  /** Takes note of a change of the lease; returns false for a change of anything else. */
  see({ storage, type, object }: Change, call: ControllerCall | undefined): boolean {
    if (storage !== LEASES) return false;
    const { spec } = object as { spec?: { leaseTransitions?: number; holderIdentity?: string } };
    const isSame = spec?.holderIdentity === this.#holder && spec?.leaseTransitions === this.#transitions;
    this.#holder = spec?.holderIdentity;
    this.#transitions = spec?.leaseTransitions;
    if (call && type !== 'DELETED' && this.#holder && !isSame)
      this.#terms.set(call.process, { number: ++this.#last, since: this.#facts.kubelets.now });
    return true;
  }
}
