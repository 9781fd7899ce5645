import type { Bind, ControlMessages } from '../../core/frames/messages.ts';
import { latestTime } from '../../core/runtime.ts';
import type { LinkView } from '../observed/link-view.ts';
import { Attachment } from './attachment.ts';
import { Binding } from './binding.ts';
import { ControlLines } from './control-lines.ts';
import { Handshake } from './handshake.ts';
import { Heartbeat } from './heartbeat.ts';
import type { Contents, LinkOptions } from './options.ts';
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
  readonly #shown: after.Shown;
  readonly #binding: Binding;
  readonly #attachment: Attachment;
  readonly #lines: ControlLines;
  readonly #heartbeat: Heartbeat;
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
    this.#shown = shown;
    this.#throttle = new Throttle({
      ...options,
      session: () => this.session,
      pause: (ms) => this.#attachment.pause(ms),
    });
    this.#binding = new Binding({
      ...options,
      podUID: pod.uid,
      onKeys: (channel) => this.#receiver.setChannel(channel),
    });
    this.#attachment = new Attachment({
      ...options,
      hurried: options.session !== '',
      onOpen: () => {
        handshake.opened();
        this.#heartbeat.opened();
        silences.update(this.#attachment.node, this, true);
      },
      onBytes: (chunk) => this.#receiver.push(chunk),
      onChange: () => {
        this.#heartbeat.updateSilence();
        shown.changed();
      },
      onDelay: (ms) => {
        shown.view = after.delayed(shown.view, ms);
      },
    });
    this.#lines = new ControlLines(options, this.#binding, this.#attachment);
    this.#heartbeat = new Heartbeat({
      clock,
      answers: options.answers,
      attachment: this.#attachment,
      sendPing: () => this.#lines.ping(),
      restAt: () =>
        after.isAtRest(shown.view) && !this.#receiver.isWaiting
          ? this.#lines.sentAt + options.lingerMs
          : Number.POSITIVE_INFINITY,
      onHeard: () => silences.heard(this.#attachment.node, this),
      onSilence: (silence) => {
        silences.update(this.#attachment.node, this, silence.silentSince !== undefined);
        shown.view = after.silent(shown.view, silence);
      },
    });
    const parts = { shown, binding: this.#binding, lines: this.#lines, heartbeat: this.#heartbeat };
    this.#requests = new Requests({ clock, ...parts });
    this.#receiver = new Receiver({
      ...options,
      ...parts,
      requests: this.#requests,
      throttle: this.#throttle,
      onReady: (ready) => handshake.ready(ready),
      onStaleEpoch: () => handshake.staleEpoch(),
    });
    const handshake = new Handshake({
      ...options,
      ...parts,
      attachment: this.#attachment,
      requests: this.#requests,
      receiver: this.#receiver,
    });
  }

  get view(): LinkView {
    const { queuedMs = this.#receiver.waitedMs, silentSince } = this.#attachment;
    const { view: shown } = this.#shown;
    const view = silentSince === undefined ? shown : this.#silentFrom(shown, silentSince);
    return queuedMs === undefined ? view : { ...after.delayed(view, queuedMs), queued: true };
  }

  #silentFrom(view: LinkView, since: number): LinkView {
    return after.silentFrom(view, since, this.#options.silences.of(this.#attachment.node, this));
  }

  /** UID of the session that the pod belongs to; empty for a pod that no session has claimed. */
  get session(): string {
    return this.#binding.session;
  }

  /** The incarnation that the pod belongs to. */
  get incarnation(): number {
    return this.#binding.incarnation;
  }

  /** Boot nonce of the pod's runner, once known. */
  get boot(): string | undefined {
    return this.#binding.boot;
  }

  get isAttached(): boolean {
    return this.#attachment.isOpen;
  }

  /** Begins to attach; `scheduled`, `running` and `node` are the known facts about the pod. */
  open(pod: { scheduled: boolean; running: boolean; node?: string | undefined; fresh?: boolean }): void {
    this.#isCreated = pod.fresh === true;
    if (pod.fresh) this.#shown.view = after.openedFresh(this.#shown.view);
    this.#attachment.open(pod);
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
    this.#binding.assign(session, incarnation);
    const { view } = this.#shown;
    // The runner of a pod that this leader has claimed has got nothing from anybody else.
    const isNew = view.phase === 'Unbound' || (view.phase === 'Opening' && this.#isCreated);
    const fresh = isNew && this.#claims.has(session);
    this.#shown.view = { ...view, fresh };
    this.#attachment.hurry();
    // The runner is asked again: who has bound it may have been another leader.
    if (view.phase !== 'Unbound' && !fresh) this.#attachment.reattach();
  }

  podChanged(pod: { scheduled: boolean; deleted: boolean; node?: string | undefined }): void {
    this.#attachment.podChanged(pod);
  }

  /** Asks for the priority of the attach again, while it waits for its place. */
  reconsider(): void {
    this.#attachment.reconsider();
  }

  close(): void {
    this.#heartbeat.close();
    this.#options.silences.update(this.#attachment.node, this, false);
    this.#receiver.close();
    this.#throttle.close();
    this.#attachment.close();
  }

  /**
   * Answers `ready` of an unbound runner; `restore` follows at once where there is a state. Repeated for a bound runner
   * that lacks its whole state, as its refusal shows; the suspension that it refused meanwhile is asked for again.
   */
  bind(bind: Omit<Bind, 'keys'>, contents: Contents = {}): void {
    if (!this.#lines.bind(bind, contents)) return;
    this.#shown.view = after.bindSent(this.#shown.view, latestTime(this.#options.clock));
    this.#requests.suspendAgain();
    this.#heartbeat.expectAnswer();
    this.#shown.changed();
  }

  startTurn(turn: ControlMessages['turn']): void {
    if (this.#binding.hasKeys) this.#requests.startTurn(turn);
  }

  /** Sends the decision to the process that waits for it, or resumes the turn in a new one. */
  resumeTurn(turn: ControlMessages['approval']): void {
    if (this.#binding.hasKeys) this.#requests.resumeTurn(turn);
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
    const { snapshot } = this.#shown.view;
    this.#requests.resume();
    if (snapshot) this.acknowledge(snapshot.seq);
    this.#shown.changed();
  }

  /** Notes that the turns were listed for a result of the pod, as no running turn is known that it fits. */
  stray(): void {
    this.#throttle.stray();
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
