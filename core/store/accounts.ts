import type { Holding } from './share.ts';
import type { StoreKey } from './store.ts';

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

type Position = Pick<StoreKey, 'incarnation' | 'seq'>;

/** The latest stored state of each session, and its bytes. */
export class LatestStates {
  readonly #bySession = new Map<string, Position & { bytes: number }>();

  /** Adds bytes of a state, which may have several parts. */
  add(sessionUID: string, { incarnation, seq }: Position, bytes: number): void {
    const known = this.#bySession.get(sessionUID);
    const order = known ? incarnation - known.incarnation || seq - known.seq : 1;
    if (order < 0) return;
    this.#bySession.set(sessionUID, { incarnation, seq, bytes: bytes + (order === 0 && known ? known.bytes : 0) });
  }

  addAll(other: LatestStates): void {
    for (const [sessionUID, { bytes, ...position }] of other.#bySession) this.add(sessionUID, position, bytes);
  }

  bytesOf(sessionUID: string): number {
    return this.#bySession.get(sessionUID)?.bytes ?? 0;
  }
}
