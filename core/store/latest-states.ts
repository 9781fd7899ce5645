import type { StoreKey } from './store.ts';

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
