import type { Bind, ControlMessages } from '../../core/frames/messages.ts';
import { latestTime } from '../../core/runtime.ts';
import type { LinkView } from '../observed/link-view.ts';
import { Attachment } from './attachment.ts';
import { Binding } from './binding.ts';
import { ControlLines } from './control-lines.ts';
import { Handshake } from './handshake.ts';
import { Heartbeat } from './heartbeat.ts';
import type { Contents, LinkOptions } from './options.ts';
import type { LinkParts } from './parts.ts';
import { Receiver } from './receiver.ts';
import { Requests } from './requests.ts';
import { Throttle } from './throttle.ts';
import * as after from './view.ts';

/**
 * The controller's end of the boundary with one pod: asks for missed frames and shows the runner's messages as a
 * `LinkView`. It decides nothing. Bytes come from the attachment, which the heartbeat watches, to the receiver; requests go
 * out as control lines; each attach begins with the handshake. All of them change what is shown.
 */
export class Link {
  readonly #options: LinkOptions;
  readonly #parts: LinkParts;
  readonly #requests: Requests;
  readonly #receiver: Receiver;
  readonly #throttle: Throttle;
  /** This leader has created the pod. */
  #isCreated = false;
  /** UIDs of sessions for which this leader has sent a claim of the pod that is not known to have failed. */
  readonly #claims = new Set<string>();

  constructor(options: LinkOptions) {
    const { clock, silences, pod } = options;
    this.#options = options;
    const shown = new after.Shown(after.unopened(pod.uid, latestTime(clock)), options.onChange);
    const throttle = new Throttle({
      ...options,
      session: () => this.session,
      pause: (ms) => attachment.pause(ms),
    });
    const binding = new Binding({ ...options, podUID: pod.uid, onKeys: (channel) => receiver.setChannel(channel) });
    const attachment = new Attachment({
      ...options,
      hurried: options.session !== '',
      onOpen: () => {
        handshake.opened();
        heartbeat.opened();
        silences.update(attachment.node, this, true);
      },
      onBytes: (chunk) => receiver.push(chunk),
      onChange: () => {
        heartbeat.updateSilence();
        shown.changed();
      },
      onDelay: (ms) => {
        shown.view = after.delayed(shown.view, ms);
      },
    });
    const lines = new ControlLines({ ...options, binding, attachment });
    const heartbeat = new Heartbeat({
      clock,
      answers: options.answers,
      attachment,
      sendPing: () => lines.ping(),
      restAt: () =>
        after.isAtRest(shown.view) && !receiver.isWaiting ? lines.sentAt + options.lingerMs : Number.POSITIVE_INFINITY,
      onHeard: () => silences.heard(attachment.node, this),
      onSilence: (silence) => {
        silences.update(attachment.node, this, silence.silentSince !== undefined);
        shown.view = after.silent(shown.view, silence);
      },
    });
    const parts: LinkParts = { shown, binding, attachment, lines, heartbeat };
    const requests = new Requests({ clock, ...parts });
    const receiver: Receiver = new Receiver({
      ...options,
      ...parts,
      requests,
      throttle,
      onReady: (ready) => handshake.ready(ready),
      onStaleEpoch: () => handshake.staleEpoch(),
    });
    const handshake = new Handshake({ ...options, ...parts, requests, receiver });
    this.#parts = parts;
    this.#requests = requests;
    this.#receiver = receiver;
    this.#throttle = throttle;
  }

  get view(): LinkView {
    const { queuedMs = this.#receiver.waitedMs, silentSince } = this.#parts.attachment;
    const { view: shown } = this.#parts.shown;
    const view = silentSince === undefined ? shown : this.#silentFrom(shown, silentSince);
    return queuedMs === undefined ? view : { ...after.delayed(view, queuedMs), queued: true };
  }

  #silentFrom(view: LinkView, since: number): LinkView {
    return after.silentFrom(view, since, this.#options.silences.of(this.#parts.attachment.node, this));
  }

  /** UID of the pod's session; empty for a pod that no session has claimed. */
  get session(): string {
    return this.#parts.binding.session;
  }

  /** The pod's incarnation. */
  get incarnation(): number {
    return this.#parts.binding.incarnation;
  }

  /** Boot nonce of the pod's runner, once known. */
  get boot(): string | undefined {
    return this.#parts.binding.boot;
  }

  get isAttached(): boolean {
    return this.#parts.attachment.isOpen;
  }

  /** Begins to attach; `scheduled`, `running` and `node` are the known facts about the pod. */
  open(pod: { scheduled: boolean; running: boolean; node?: string | undefined; fresh?: boolean }): void {
    this.#isCreated = pod.fresh === true;
    if (pod.fresh) this.#parts.shown.view = after.obtained(this.#parts.shown.view, true);
    this.#parts.attachment.open(pod);
  }

  /**
   * Notes that this leader is about to send a claim of the pod for a session. Returns what takes the note back once the claim is
   * known to have failed; one of an earlier claim, whose answer was lost, stays.
   */
  claiming(session: string): () => void {
    if (this.#claims.has(session)) return () => {};
    this.#claims.add(session);
    return () => this.#claims.delete(session);
  }

  /** Gives the pod to the session whose claim has succeeded. */
  assign(session: string, incarnation: number): void {
    this.#throttle.assigned();
    this.#parts.binding.assign(session, incarnation);
    const { view } = this.#parts.shown;
    // The runner of a pod that this leader has claimed has got nothing from anybody else.
    const isNew = view.phase === 'Unbound' || (view.phase === 'Opening' && this.#isCreated);
    const fresh = isNew && this.#claims.has(session);
    this.#parts.shown.view = after.obtained(view, fresh);
    this.#parts.attachment.hurry();
    // The runner is asked again: who has bound it may have been another leader.
    if (view.phase !== 'Unbound' && !fresh) this.#parts.attachment.reattach();
  }

  podChanged(pod: { scheduled: boolean; deleted: boolean; node?: string | undefined }): void {
    this.#parts.attachment.podChanged(pod);
  }

  /** Asks for the priority of the attach again, while it waits for its place. */
  reconsider(): void {
    this.#parts.attachment.reconsider();
  }

  close(): void {
    this.#parts.heartbeat.close();
    this.#options.silences.update(this.#parts.attachment.node, this, false);
    this.#receiver.close();
    this.#throttle.close();
    this.#parts.attachment.close();
  }

  /**
   * Answers `ready` of an unbound runner; `restore` follows at once where there is a state. Repeated for a bound runner
   * that lacks its whole state, as its refusal shows; the suspension that it has refused is sent again.
   */
  bind(bind: Omit<Bind, 'keys'>, contents: Contents = {}): void {
    if (!this.#parts.lines.bind(bind, contents)) return;
    this.#parts.shown.view = after.bindSent(this.#parts.shown.view, latestTime(this.#options.clock));
    this.#requests.suspendAgain();
    this.#parts.heartbeat.expectAnswer();
    this.#parts.shown.changed();
  }

  startTurn(turn: ControlMessages['turn']): void {
    if (this.#parts.binding.hasKeys) this.#requests.startTurn(turn);
  }

  /** Sends the decision to the process that waits for it, or resumes the turn in a new one. */
  resumeTurn(turn: ControlMessages['approval']): void {
    if (this.#parts.binding.hasKeys) this.#requests.resumeTurn(turn);
  }

  /** Cancels a turn; `why` is set when Berth cancels it unasked. */
  cancel(turn: string, why?: 'LifetimeExceeded'): void {
    this.#requests.cancel(turn, why);
  }

  /**
   * Asks the runner to refuse turns from now on, which `view.suspended` shows together with its last activity, and to
   * hand over its state where that is wanted, which appears as `view.snapshot`.
   */
  suspend(wanted: ControlMessages['snapshot'] | undefined): void {
    this.#requests.suspend(wanted, this.#receiver.last);
  }

  resume(): void {
    const { snapshot } = this.#parts.shown.view;
    this.#requests.resume();
    if (snapshot) this.acknowledge(snapshot.seq);
    this.#parts.shown.changed();
  }

  /** Notes that the turns were listed for a result of the pod, as no running turn is known that it fits. */
  noteUnmatched(): void {
    this.#throttle.noteUnmatched();
  }

  /** Acknowledges everything through this frame: it is stored, and the runner may forget it. */
  acknowledge(through: number): void {
    this.#receiver.acknowledge(through);
  }

  /** Reads the frames of an ended container from its log; see `Receiver.takeLog`. */
  takeLog(log: Buffer): Promise<void> {
    return this.#receiver.takeLog(log);
  }
}
