import type { Limit } from './limits.ts';
import { type Space, spaceOf } from './tally.ts';

interface Candidate extends Space {
  key: string;
  class: string;
}

/** Candidates in their order. Those before `head` are gone. */
interface List<C> {
  items: C[];
  head: number;
}

/** Candidates for preemption by the limits whose slots they have, so that an applicant sees those alone that can help it. */
export class Candidates<C extends Candidate> {
  readonly #left: Set<C>;
  readonly #byKey = new Map<string, C>();
  readonly #place = new Map<C, number>();
  readonly #all: List<C>;
  readonly #classes = new Map<string, List<C>>();
  readonly #spaces = new Map<string, List<C>>();
  /** Candidates whose class is not known count for every class. */
  readonly #nameless: C[];

  /** `ordered`: the first one is chosen first. */
  constructor(ordered: C[]) {
    this.#left = new Set(ordered);
    this.#all = { items: ordered, head: 0 };
    this.#nameless = ordered.filter((one) => one.class === '');
    for (const [place, candidate] of ordered.entries()) {
      this.#byKey.set(candidate.key, candidate);
      this.#place.set(candidate, place);
      listIn(this.#classes, candidate.class).items.push(candidate);
      listIn(this.#spaces, spaceOf(candidate)).items.push(candidate);
    }
  }

  get isEmpty(): boolean {
    return this.#left.size === 0;
  }

  /** The first one that is left of those with these keys. */
  first(keys: readonly string[]): C | undefined {
    const found = keys.map((key) => this.#byKey.get(key)).filter((one) => one !== undefined && this.#left.has(one));
    return found.sort((a, b) => this.#placeOf(a) - this.#placeOf(b))[0];
  }

  remove(candidate: C): void {
    this.#left.delete(candidate);
  }

  /** Those that have a slot of the limit as it applies to `space`, in order. One may be removed during the iteration. */
  *of({ scope }: Limit, space: Space): Iterable<C> {
    const { namespace, class: name = '' } = space;
    const list =
      scope === 'Installation'
        ? this.#all
        : scope === 'Class'
          ? this.#classes.get(name)
          : this.#spaces.get(spaceOf(space));
    if (scope !== 'Installation' && name !== '' && this.#nameless.length > 0) {
      const nameless = this.#nameless.filter((one) => scope === 'Class' || one.namespace === namespace);
      const both = [...(list?.items ?? []), ...nameless].sort((a, b) => this.#placeOf(a) - this.#placeOf(b));
      yield* both.filter((one) => this.#left.has(one));
      return;
    }
    if (!list) return;
    const gone = (place: number) => place < list.items.length && !this.#left.has(list.items[place] as C);
    while (gone(list.head)) list.head++;
    for (let place = list.head; place < list.items.length; place++) {
      if (!gone(place)) yield list.items[place] as C;
    }
  }

  #placeOf(candidate: C | undefined): number {
    return (candidate && this.#place.get(candidate)) ?? 0;
  }
}

function listIn<C>(lists: Map<string, List<C>>, key: string): List<C> {
  let list = lists.get(key);
  if (!list) {
    list = { items: [], head: 0 };
    lists.set(key, list);
  }
  return list;
}
