import type { Applicant } from '../observed/capacity-view.ts';
import { spaceOf } from './tally.ts';

/** Applicants of one class in one namespace: a limit that holds back one of them holds back all. */
interface Lane {
  namespace: string;
  class: string;
  /** Applicants in their order. */
  waiting: Applicant[];
}

/**
 * The queue for running slots: round robin over namespaces, then priority, then age. The namespace that was served
 * least recently comes first, so each is served once before any is served again, for any number of sessions.
 */
export class Queue {
  readonly #lanes = new Map<string, Map<string, Lane>>();
  readonly #laneOf = new Map<string, { lane: Lane; applicant: Applicant }>();
  readonly #servedAt = new Map<string, number>();
  /** Pod → the turn of a namespace that it was served with, as long as the API server may refuse it the slot. */
  readonly #unconfirmed = new Map<string, { namespace: string; at: number; before: number | undefined }>();
  #latest = 0;

  get size(): number {
    return this.#laneOf.size;
  }

  keys(): Iterable<string> {
    return this.#laneOf.keys();
  }

  has(key: string): boolean {
    return this.#laneOf.has(key);
  }

  /**
   * Joins the queue, or moves to the position that the applicant's present priority and age give. Returns true when
   * anything changed.
   */
  join(applicant: Applicant): boolean {
    if (this.stands(applicant)) return false;
    this.leave(applicant.key);
    const lanes = this.#lanes.get(applicant.namespace) ?? new Map<string, Lane>();
    this.#lanes.set(applicant.namespace, lanes);
    const lane = lanes.get(applicant.class) ?? { namespace: applicant.namespace, class: applicant.class, waiting: [] };
    lanes.set(applicant.class, lane);
    lane.waiting.splice(rankIn(lane.waiting, applicant), 0, applicant);
    this.#laneOf.set(applicant.key, { lane, applicant });
    return true;
  }

  leave(key: string): boolean {
    const found = this.#laneOf.get(key);
    if (!found) return false;
    const { lane, applicant } = found;
    this.#laneOf.delete(key);
    lane.waiting.splice(rankIn(lane.waiting, applicant), 1);
    if (lane.waiting.length > 0) return true;
    const lanes = this.#lanes.get(lane.namespace);
    lanes?.delete(lane.class);
    if (lanes?.size === 0) this.#lanes.delete(lane.namespace);
    return true;
  }

  /** Evaluates `view` with the applicant in the queue, and restores the queue afterwards. */
  preview<R>(applicant: Applicant, view: () => R): R {
    const former = this.#laneOf.get(applicant.key)?.applicant;
    const isMoved = this.join(applicant);
    try {
      return view();
    } finally {
      if (isMoved) this.leave(applicant.key);
      if (isMoved && former) this.join(former);
    }
  }

  /** Reports whether the applicant is in the queue as it is: with its present priority, age and pods to claim. */
  stands(applicant: Applicant): boolean {
    const known = this.#laneOf.get(applicant.key)?.applicant;
    if (!known || compare(known, applicant) !== 0 || spaceOf(known) !== spaceOf(applicant)) return false;
    return (known.warm ?? []).join() === (applicant.warm ?? []).join();
  }

  /**
   * Records that a session of the namespace got a slot for the pod, at this time or, if others were served at it, just after
   * them; until `confirmed` it can be `refused`.
   */
  served(namespace: string, at: number, pod: string): void {
    this.#latest = Math.max(at, this.#latest + 1);
    this.#unconfirmed.set(pod, { namespace, at: this.#latest, before: this.#servedAt.get(namespace) });
    this.#servedAt.set(namespace, this.#latest);
  }

  confirmed(pod: string): void {
    this.#unconfirmed.delete(pod);
  }

  /** The session did not get the slot for the pod: the turn of its namespace is not over. */
  refused(pod: string): void {
    const turn = this.#unconfirmed.get(pod);
    if (!turn) return;
    const { namespace, at, before } = turn;
    this.#unconfirmed.delete(pod);
    for (const later of this.#unconfirmed.values()) if (later.before === at) later.before = before;
    if (this.#servedAt.get(namespace) !== at) return;
    if (before === undefined) this.#servedAt.delete(namespace);
    else this.#servedAt.set(namespace, before);
  }

  /** Records that an earlier leader served the namespace at this time. */
  wasServed(namespace: string, at: number): void {
    if (at > (this.#servedAt.get(namespace) ?? Number.NEGATIVE_INFINITY)) this.#servedAt.set(namespace, at);
    this.#latest = Math.max(this.#latest, at);
  }

  /**
   * Offers each applicant a slot, in the order of the queue. Where `serve` answers false, all others of the same class
   * and namespace are skipped, as they wait for the same limits. Ends when no applicant is left to serve.
   */
  walk(serve: (applicant: Applicant) => boolean): void {
    let namespaces = this.#inTurn().map((lanes) => lanes.map((lane) => ({ lane, next: 0 })));
    while (namespaces.length > 0) {
      const still: typeof namespaces = [];
      for (let lanes of namespaces) {
        while (lanes.length > 0) {
          const first = lanes.reduce((a, b) => (compare(at(a), at(b)) <= 0 ? a : b));
          const served = serve(at(first));
          if (served) first.next++;
          if (!served || first.next === first.lane.waiting.length) lanes = lanes.filter((lane) => lane !== first);
          if (served) break;
        }
        if (lanes.length > 0) still.push(lanes);
      }
      namespaces = still;
    }
  }

  /**
   * Position in the queue from 1, of an applicant that is in it or would join it; as if all before it could be served.
   */
  position(applicant: Applicant): number {
    const before = (lanes: Iterable<Lane>) => sum(lanes, ({ waiting }) => rankIn(waiting, applicant));
    const former = this.#laneOf.get(applicant.key)?.applicant;
    // An applicant whose priority was just lowered does not wait for itself.
    const own = former && compare(former, applicant) < 0 ? 1 : 0;
    const ahead = before(this.#lanes.get(applicant.namespace)?.values() ?? []) - own;
    let position = 1 + ahead;
    for (const [namespace, lanes] of this.#lanes) {
      if (namespace === applicant.namespace) continue;
      // Counts other namespaces: each is served once per own applicant ahead, and once more if its turn comes earlier.
      const rounds = ahead + (this.#turnOf(namespace, applicant.namespace) < 0 ? 1 : 0);
      position += Math.min(
        rounds,
        sum(lanes.values(), ({ waiting }) => waiting.length),
      );
    }
    return position;
  }

  /** Orders namespaces by their turn; names decide among those that were never served. */
  #turnOf(a: string, b: string): number {
    const order = (this.#servedAt.get(a) ?? 0) - (this.#servedAt.get(b) ?? 0);
    return order || (a < b ? -1 : 1);
  }

  #inTurn(): Lane[][] {
    const namespaces = [...this.#lanes.keys()].sort((a, b) => this.#turnOf(a, b));
    return namespaces.map((namespace) => [...(this.#lanes.get(namespace)?.values() ?? [])]);
  }
}

const at = ({ lane, next }: { lane: Lane; next: number }) => lane.waiting[next] as Applicant;

/** Orders applicants within a namespace: higher priority, then longer wait, then name. */
function compare(a: Applicant, b: Applicant): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  if (a.since !== b.since) return a.since - b.since;
  return a.key === b.key ? 0 : a.key < b.key ? -1 : 1;
}

/** Number of waiting applicants before this one. */
function rankIn(waiting: Applicant[], applicant: Applicant): number {
  let [low, high] = [0, waiting.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(waiting[middle] as Applicant, applicant) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function sum<T>(items: Iterable<T>, of: (item: T) => number): number {
  let total = 0;
  for (const item of items) total += of(item);
  return total;
}
