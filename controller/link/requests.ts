import type { ControlMessages, Refused } from '../../core/frames/messages.ts';
import type { LinkOptions } from './options.ts';
import type { LinkParts } from './parts.ts';
import * as after from './view.ts';

type RequestsOptions = Pick<LinkOptions, 'clock'> & Pick<LinkParts, 'shown' | 'lines' | 'heartbeat'>;

/** What the controller has asked of the runner: turns, their cancellation and the suspension. Asks again where a line may be lost. */
export class Requests {
  readonly #options: RequestsOptions;
  /** Numbers of control lines: the last that gave a turn, and the last that gave one or acknowledged the end of one. */
  #turnNumber = 0;
  #changeNumber = 0;
  /** UID of the last turn that was given and whose end is not acknowledged. */
  #given: string | undefined;
  /** Turns that were cancelled over this attach, by the numbers of the control lines. */
  readonly #cancels = new Map<number, string>();
  /** Last sequence number that the runner had sent when it was asked to suspend: a snapshot up to it is an earlier one. */
  #askedAfter = 0;
  /** Options of the snapshot that is part of the suspension, if any. */
  #wanted: ControlMessages['snapshot'] | undefined;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /** Number of the last control line that gave a turn or acknowledged the end of one. */
  get changeNumber(): number {
    return this.#changeNumber;
  }

  startTurn(turn: ControlMessages['turn']): void {
    this.#deliver(turn.turn, undefined, () => this.#options.lines.send('turn', turn));
  }

  /** Sends the decision to the process that waits for it, or resumes the turn in a new one. */
  resumeTurn(turn: ControlMessages['approval']): void {
    this.#deliver(turn.turn, turn.approval.requestId, () => this.#options.lines.send('approval', turn));
  }

  #deliver(turn: string, lastDecided: string | undefined, send: () => number): void {
    const { shown, heartbeat } = this.#options;
    this.#given = turn;
    shown.view = after.turnSent(shown.view, turn, lastDecided);
    this.#turnNumber = send();
    this.#changeNumber = this.#turnNumber;
    heartbeat.expectAnswer();
  }

  /** Notes that the end of a turn was acknowledged by this control line. Returns whether it was the turn that was given. */
  ended(turn: string, number: number): boolean {
    const isGiven = turn === this.#given;
    this.#changeNumber = number;
    this.#given = undefined;
    return isGiven;
  }

  /** Cancels a turn; `why` is set when Berth cancels it unasked. */
  cancel(turn: string, why?: 'LifetimeExceeded'): void {
    const { clock, shown, heartbeat } = this.#options;
    const cancelled = { at: clock.monotonic(), ...(why ? { why } : {}) };
    shown.change(after.cancelSent(shown.view, turn, cancelled));
    this.#sendCancel(turn, cancelled);
    heartbeat.expectAnswer();
  }

  #sendCancel(turn: string, { why }: { why?: 'LifetimeExceeded' }): void {
    const stop = why ? { turn, outcome: 'TimedOut' as const, reason: why } : { turn, outcome: 'Cancelled' as const };
    this.#cancels.set(this.#options.lines.send('cancel', stop), turn);
  }

  /** `askedAfter`: last sequence number that the runner has sent. */
  suspend(wanted: ControlMessages['snapshot'] | undefined, askedAfter: number): void {
    const { shown, heartbeat } = this.#options;
    this.#wanted = wanted;
    this.#askedAfter = askedAfter;
    shown.view = after.suspendSent(shown.view);
    this.#sendSuspend();
    heartbeat.expectAnswer();
  }

  #sendSuspend(): void {
    const { lines, heartbeat } = this.#options;
    lines.send('suspend', {});
    heartbeat.ping();
    if (this.#wanted) lines.send('snapshot', this.#wanted);
  }

  /** Asks again for a suspension whose lines may be lost. */
  suspendAgain(): void {
    const { suspendSent, snapshot } = this.#options.shown.view;
    if (suspendSent && !snapshot) this.#sendSuspend();
  }

  resume(): void {
    const { shown, lines } = this.#options;
    shown.view = after.resumeSent(shown.view);
    lines.send('resume', {});
  }

  /**
   * Reports whether a snapshot is the one that was asked for. One for an earlier leader lacks what the session's processes wrote
   * since.
   */
  isWanted(snapshot: { seq: number }): boolean {
    return snapshot.seq > this.#askedAfter && this.#options.shown.view.suspendSent && this.#wanted !== undefined;
  }

  /** Sends again what was sent over a broken attach and may be lost. Sent twice, it has no other effect. */
  again(): void {
    this.#cancels.clear();
    for (const [turn, cancelled] of this.#options.shown.view.cancelSent ?? [])
      if (!cancelled.unknown) this.#sendCancel(turn, cancelled);
    this.suspendAgain();
  }

  refused(message: Refused): void {
    const { shown, heartbeat } = this.#options;
    if (message.n === this.#turnNumber) {
      shown.view = after.turnRefused(shown.view, message.code);
      // A busy runner may be free soon; the answer shows whether the turn has to be sent again.
      if (message.code === 'Busy') heartbeat.ping();
    }
    const cancelled = this.#cancels.get(message.n);
    if (cancelled !== undefined) {
      // The answer to the ping that follows may be lost.
      if (this.#turnNumber < message.n) shown.view = after.cancelRefused(shown.view, cancelled, message.code);
      // The refused cancel shows that its turn does not run; a ping asks which one does.
      heartbeat.ping();
    }
    shown.change(after.refused(shown.view, message));
  }
}
