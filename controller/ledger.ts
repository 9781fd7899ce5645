import { keyOf } from '../core/kube/cache.ts';
import type { Place } from './world.ts';

/** What counts towards a limit: a session that was admitted, or a pod that is not gone yet. */
export interface Holder {
  /** Name of the pod: the session that is admitted and its pod count once. */
  pod: string;
  namespace: string;
  class: string;
}

export interface Applicant {
  key: string;
  class: string;
  /** Since when the session has waited, milliseconds since the epoch. */
  since: number;
}

export interface LedgerOptions {
  /** Everything that holds a place by what the caches show; undefined while that cannot be trusted. */
  holders(): Iterable<Holder> | undefined;
  /** Absent: no limit. */
  maxRunning: number | undefined;
  classLimit(sessionClass: string): number | undefined;
  /** A session whose turn it may be by now. */
  onVacancy(key: string): void;
}

const CLOSED = 'Whether a place is free is not known at the moment; the session waits.';

/**
 * Who may have a pod. Counts what is there by the caches and what this leader has promised since; unknown means full. A
 * promise is given and counted in one step, so two sessions never get one place. First come, first served; a session that
 * only its own class holds back does not hold back others.
 */
export class Ledger {
  readonly #options: LedgerOptions;
  /** Promised, but not yet seen in the caches: key → holder. */
  readonly #promised = new Map<string, Holder>();
  readonly #waiting = new Map<string, Applicant>();
  #open = false;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** Nothing is admitted before; after a lease was taken over its old holder's last request must be dead first. */
  open(): void {
    this.#open = true;
    this.vacancy();
  }

  close(): void {
    this.#open = false;
    this.#promised.clear();
    this.#waiting.clear();
  }

  /** Whether the session would get a place now. */
  place(applicant: Applicant): Place {
    const taken = this.#taken();
    if (!taken) return { waiting: 'AtCapacity', message: CLOSED };
    const obstacle = this.#obstacle(applicant, taken);
    if (obstacle) return { waiting: 'AtCapacity', message: obstacle };
    for (const other of this.#waiting.values()) {
      if (other.key === applicant.key || !isBefore(other, applicant)) continue;
      if (!this.#obstacle(other, taken)) {
        return { waiting: 'AtCapacity', message: `Session ${other.key} has waited longer and comes first.` };
      }
    }
    return 'Available';
  }

  /** Takes a place if one is to be had; it stays taken until `settle`. */
  reserve(applicant: Applicant, pod: string): boolean {
    if (this.place(applicant) !== 'Available') return false;
    this.#promised.set(applicant.key, { pod, namespace: namespaceOf(applicant.key), class: applicant.class });
    this.#waiting.delete(applicant.key);
    return true;
  }

  /** The promise is in the caches by now, or the write that was to use it has surely not happened. */
  settle(key: string): void {
    if (this.#promised.delete(key)) this.vacancy();
  }

  wait(applicant: Applicant): void {
    this.#waiting.set(applicant.key, applicant);
  }

  leave(key: string): void {
    if (this.#waiting.delete(key)) this.vacancy();
  }

  /** Something was freed: those whose turn it may be look again. */
  vacancy(): void {
    const order = [...this.#waiting.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
    for (const applicant of order) {
      if (this.place(applicant) === 'Available') this.#options.onVacancy(applicant.key);
    }
  }

  #taken(): Map<string, Holder> | undefined {
    if (!this.#open) return undefined;
    const holders = this.#options.holders();
    if (!holders) return undefined;
    const taken = new Map<string, Holder>();
    for (const holder of holders) taken.set(keyOf({ namespace: holder.namespace, name: holder.pod }), holder);
    for (const holder of this.#promised.values()) {
      taken.set(keyOf({ namespace: holder.namespace, name: holder.pod }), holder);
    }
    return taken;
  }

  #obstacle(applicant: Applicant, taken: Map<string, Holder>): string | undefined {
    const { maxRunning, classLimit } = this.#options;
    if (maxRunning !== undefined && taken.size >= maxRunning) {
      return `All ${maxRunning} running places of the installation are taken.`;
    }
    const limit = classLimit(applicant.class);
    if (limit === undefined) return undefined;
    const ofClass = [...taken.values()].filter((holder) => holder.class === applicant.class).length;
    return ofClass >= limit ? `All ${limit} running places of class "${applicant.class}" are taken.` : undefined;
  }
}

function isBefore(a: Applicant, b: Applicant): boolean {
  return a.since !== b.since ? a.since < b.since : a.key < b.key;
}

function namespaceOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
