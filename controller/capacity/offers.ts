import type { Clock } from '../../core/runtime.ts';
import type { Applicant } from '../observed/capacity-view.ts';
import type { Queue } from './queue.ts';
import { findServed, type Served, type Supply } from './served.ts';

export interface OffersOptions {
  clock: Clock;
  queue: Queue;
  supply(): Supply;
  /** Reports whether slots may be taken. `Unknown`: not at the moment, and no event will say when they may. */
  state(): 'Open' | 'Unknown' | 'Closed';
  /** Handler of a session of the queue for which there is a slot. */
  onOffer(key: string): void;
  /** Handler of the end of an offer of slots. */
  onOffered(): void;
}

/** Time after which slots are offered again where something was unknown: no event comes when it is known. */
const UNKNOWN_MS = 2_000;

/** Finds for which sessions of the queue there is a slot, and offers it to them. */
export class Offers {
  readonly #options: OffersOptions;
  /** Found anew after every change, and after `UNKNOWN_MS` where limits were unknown. */
  #served: Served | undefined;
  /** Cancels the timer of `UNKNOWN_MS`. */
  #cancelLook: (() => void) | undefined;

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  close(): void {
    this.#cancelLook?.();
  }

  /** A slot may have been taken that was meant for a session of the queue. */
  forget(): void {
    this.#served = undefined;
  }

  /** The session of the queue has its slot. Those for which there was one beside it still have theirs. */
  taken(key: string): void {
    this.#served?.keys.delete(key);
  }

  /** Offers the slots: one may have become free, or a session has joined the queue. */
  renew(): void {
    const { queue, state, onOffer, onOffered } = this.#options;
    this.#served = undefined;
    if (queue.size === 0 || state() === 'Closed') return;
    if (state() === 'Unknown') {
      this.#lookAgain();
      return;
    }
    for (const key of this.#find().keys) onOffer(key);
    onOffered();
  }

  /** Sessions that are served if the applicant is in the queue; undefined: the queue would have no other. */
  with(applicant: Applicant): Served | undefined {
    const { queue, supply } = this.#options;
    if (queue.stands(applicant)) return this.#find();
    return queue.size === 0 ? undefined : queue.preview(applicant, () => findServed(queue, supply()));
  }

  #find(): Served {
    const { queue, supply } = this.#options;
    this.#served ??= findServed(queue, supply());
    if (this.#served.isUncertain) this.#lookAgain();
    return this.#served;
  }

  #lookAgain(): void {
    this.#cancelLook ??= this.#options.clock.setTimer(UNKNOWN_MS, () => {
      this.#cancelLook = undefined;
      this.renew();
    });
  }
}
