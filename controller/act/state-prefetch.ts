import { storeKey } from '../../core/resources/names.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import type { Clock } from '../../core/runtime.ts';

/** Bytes of states that are read ahead at once: a burst of sessions that wake must not fill the controller's memory. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Time for which a state that was read ahead is kept, milliseconds: about that of a slow start. */
const KEPT_MS = 30_000;

/** Sealed states that are read while their sessions get a pod, so that the runner need not wait for them once it is there. */
export class StatePrefetch {
  readonly #clock: Pick<Clock, 'setTimer'>;
  readonly #held = new Map<string, { sealed: Promise<Buffer>; bytes: number; cancel: () => void }>();
  #bytes = 0;

  constructor(clock: Pick<Clock, 'setTimer'>) {
    this.#clock = clock;
  }

  /** Begins to read the state, unless too much is held already. A failure shows only in what `take` returns. */
  begin(sessionUID: string, state: StateRef, read: () => Promise<Buffer>): void {
    const key = keyOf(sessionUID, state);
    if (this.#held.has(key) || this.#bytes + state.bytes > MAX_BYTES) return;
    const sealed = read();
    sealed.catch(() => {});
    this.#bytes += state.bytes;
    const cancel = this.#clock.setTimer(KEPT_MS, () => this.#forget(key));
    this.#held.set(key, { sealed, bytes: state.bytes, cancel });
  }

  /** The state, if it was read ahead; it is held no longer. */
  take(sessionUID: string, state: StateRef): Promise<Buffer> | undefined {
    const key = keyOf(sessionUID, state);
    const held = this.#held.get(key);
    this.#forget(key);
    return held?.sealed;
  }

  #forget(key: string): void {
    const held = this.#held.get(key);
    if (!held) return;
    this.#held.delete(key);
    this.#bytes -= held.bytes;
    held.cancel();
  }
}

const keyOf = (sessionUID: string, { incarnation, seq }: StateRef) => storeKey(sessionUID, incarnation, seq);
