import type { Ready } from '../../core/frames/messages.ts';
import type { LinkOptions } from './options.ts';
import type { LinkParts } from './parts.ts';
import type { Receiver } from './receiver.ts';
import type { Requests } from './requests.ts';
import * as after from './view.ts';

type HandshakeOptions = Pick<LinkOptions, 'epoch' | 'onLaterEpoch'> &
  Omit<LinkParts, 'lines'> & { requests: Requests; receiver: Receiver };

/** Begins each attach: recognizes the runner by its `ready`, and repeats what may have been lost. */
export class Handshake {
  readonly #options: HandshakeOptions;
  /** True once this attach has had its `ready`; the empty lines that begin an attach can produce more than one. */
  #greeted = false;
  /** The runner says, without a proof, that it obeys a later leader. If it does, it refuses every line, and owes its answers. */
  #outranked = false;

  constructor(options: HandshakeOptions) {
    this.#options = options;
  }

  /** An attach is open; nothing is known of who answers. */
  opened(): void {
    this.#greeted = false;
    this.#outranked = false;
  }

  /** The runner has refused a line of this epoch: its next `ready` names the one that it obeys, with the proof. */
  staleEpoch(): void {
    if (!this.#outranked) this.#options.attachment.reattach();
  }

  /** Handles `ready`. Whether the runner still has this link's keys shows in whether its frames open. */
  ready(ready: Ready): void {
    const { shown, binding, attachment, heartbeat, requests, receiver } = this.#options;
    if (ready.session === undefined) heartbeat.heard();
    // A second `ready` is no answer to a request after the first.
    else if (!this.#greeted) attachment.heard();
    const isLater = ready.epoch > this.#options.epoch();
    if (isLater && binding.isProven(ready)) {
      // A runner with a later epoch refuses every line; a later attach works once this leader's epoch is raised.
      this.#options.onLaterEpoch(ready.epoch);
      attachment.reattach();
      return;
    }
    if (this.#greeted) return;
    this.#greeted = true;
    this.#outranked = isLater;
    const whose = binding.recognize(ready);
    if (whose !== 'Ours') {
      shown.change(after.recognized(shown.view, ready, { phase: whose }));
      return;
    }
    const resumed = binding.resume(ready.boot, shown.view.resumed);
    shown.view = after.recognized(shown.view, ready, { resumed });
    receiver.reopened(ready.lastSeq);
    requests.again();
    heartbeat.ping();
    heartbeat.expectAnswer();
    shown.changed();
  }
}
