/** A namespace and a class, as limits distinguish them. Sessions with both in common wait for the same limits. */
export interface Space {
  namespace: string;
  /** Class; absent when unknown: then it counts for every class. */
  class?: string | undefined;
}

const NAMELESS = '';

export const spaceOf = ({ namespace, class: ofClass }: Space): string => `${namespace}/${ofClass ?? NAMELESS}`;

/** Counts of taken slots: in total, by class, and by class in one namespace. */
export class Tally {
  #total = 0;
  readonly #classes = new Map<string, number>();
  readonly #spaces = new Map<string, number>();

  static copy(from: Tally): Tally {
    const tally = new Tally();
    tally.#total = from.#total;
    for (const [key, count] of from.#classes) tally.#classes.set(key, count);
    for (const [key, count] of from.#spaces) tally.#spaces.set(key, count);
    return tally;
  }

  get total(): number {
    return this.#total;
  }

  ofClass(name: string): number {
    return (this.#classes.get(name) ?? 0) + (this.#classes.get(NAMELESS) ?? 0);
  }

  ofClassIn(name: string, namespace: string): number {
    const nameless = this.#spaces.get(spaceOf({ namespace })) ?? 0;
    return (this.#spaces.get(spaceOf({ namespace, class: name })) ?? 0) + nameless;
  }

  add(space: Space, by: 1 | -1 = 1): void {
    this.#total += by;
    change(this.#classes, space.class ?? NAMELESS, by);
    change(this.#spaces, spaceOf(space), by);
  }
}

function change(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
