import type { Applicant } from '../world/capacity-view.ts';
import { spaceOf } from './tally.ts';

/** Those of one class in one namespace: whatever limit holds back one of them holds back all. */
interface Lane {
  namespace: string;
  class: string;
  /** In order. */
  waiting: Applicant[];
}

/**
 * The line in front of the running slots: round robin over namespaces, then priority, then age. The namespace that was
 * served least recently comes first, so each is served once before any is served again, whoever asks for how much.
 */
export class Queue {
  readonly #lanes = new Map<string, Map<string, Lane>>();
  readonly #laneOf = new Map<string, { lane: Lane; applicant: Applicant }>();
  readonly #servedAt = new Map<string, number>();
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

  /** Joins the line, or takes the place there that its priority and age by now give it. True when anything changed. */
  join(applicant: Applicant): boolean {
    const known = this.#laneOf.get(applicant.key)?.applicant;
    if (known && compare(known, applicant) === 0 && spaceOf(known) === spaceOf(applicant)) return false;
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

  /** A session of the namespace was given a place, at this time or, if others were served at it, just after them. */
  served(namespace: string, at: number): void {
    this.#latest = Math.max(at, this.#latest + 1);
    this.#servedAt.set(namespace, this.#latest);
  }

  /** What is known of an earlier leader's doing: the namespace was served at this time. */
  wasServed(namespace: string, at: number): void {
    if (at > (this.#servedAt.get(namespace) ?? Number.NEGATIVE_INFINITY)) this.#servedAt.set(namespace, at);
    this.#latest = Math.max(this.#latest, at);
  }

  /**
   * Goes through the line in its order and offers each a place. Where `serve` answers false, all of the same class and
   * namespace are passed over, as they wait for the same thing. Ends when nobody is left to whom anything is of use.
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

  /** Place in the line from 1, of one who is in it or would join it; as if whoever comes before could be served. */
  position(applicant: Applicant): number {
    const before = (lanes: Iterable<Lane>) => sum(lanes, ({ waiting }) => rankIn(waiting, applicant));
    const former = this.#laneOf.get(applicant.key)?.applicant;
    // Nobody waits for itself, as it may seem to one whose priority has just been lowered.
    const own = former && compare(former, applicant) < 0 ? 1 : 0;
    const ahead = before(this.#lanes.get(applicant.namespace)?.values() ?? []) - own;
    let position = 1 + ahead;
    for (const [namespace, lanes] of this.#lanes) {
      if (namespace === applicant.namespace) continue;
      // One of each other namespace for each of our own that goes first, and one more if that namespace's turn is earlier.
      const rounds = ahead + (this.#turnOf(namespace, applicant.namespace) < 0 ? 1 : 0);
      position += Math.min(
        rounds,
        sum(lanes.values(), ({ waiting }) => waiting.length),
      );
    }
    return position;
  }

  /** Whose turn is earlier; names decide among those that were never served. */
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

/** Within a namespace: higher priority, then longer waiting, then the name. */
function compare(a: Applicant, b: Applicant): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  if (a.since !== b.since) return a.since - b.since;
  return a.key === b.key ? 0 : a.key < b.key ? -1 : 1;
}

/** How many of those waiting come before the applicant. */
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
