import type { Holding } from './share.ts';

const NOTHING: Holding = { states: 0, history: 0 };

/** Bytes by namespace. */
export class Accounts {
  readonly #byNamespace = new Map<string, Holding>();
  #total = 0;

  add(namespace: string, kind: keyof Holding, bytes: number): void {
    this.#total += bytes;
    const held = this.of(namespace);
    const next = { ...held, [kind]: held[kind] + bytes };
    if (next.states === 0 && next.history === 0) this.#byNamespace.delete(namespace);
    else this.#byNamespace.set(namespace, next);
  }

  addAll(other: Accounts, sign: 1 | -1 = 1): void {
    for (const [namespace, { states, history }] of [...other.#byNamespace]) {
      this.add(namespace, 'states', sign * states);
      this.add(namespace, 'history', sign * history);
    }
  }

  subtract(other: Accounts): void {
    this.addAll(other, -1);
  }

  of(namespace: string): Holding {
    return this.#byNamespace.get(namespace) ?? NOTHING;
  }

  get namespaces(): Iterable<string> {
    return this.#byNamespace.keys();
  }

  get total(): number {
    return this.#total;
  }

  copy(): Accounts {
    const copy = new Accounts();
    copy.addAll(this);
    return copy;
  }
}
