import { type DecoderCounters, FrameDecoder, type FrameEvent } from '../../core/frames/decode.ts';
import { bindText } from '../../core/frames/encode.ts';
import type { Bind, ControlKind, ControlMessages, Frame, Pong, Ready } from '../../core/frames/messages.ts';
import { validateFrame } from '../../core/frames/validate.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import { type Clock, type Logger, latestTime, type Random } from '../../core/runtime.ts';
import type { LinkView } from '../world/link-view.ts';
import { Attachment } from './attachment.ts';
import { Binding } from './binding.ts';
import { Inbox } from './inbox.ts';
import type { MasterKeys } from './keys.ts';
import { acknowledged, answered, endedBy, remembered, started, turnRefused } from './view.ts';

export interface LinkOptions {
  api: Pick<KubeApi, 'attach'>;
  clock: Clock;
  random: Random;
  log: Logger;
  pod: { namespace: string; name: string; uid: string };
  session: string;
  incarnation: number;
  keys: MasterKeys;
  /** Epoch of the present leadership. */
  epoch(): number;
  /** Returns a number that grows with every call, over all links of the process. */
  nextNumber(): number;
  onChange(): void;
  /** Last answer of any runner: `at` in monotonic milliseconds, shared by all links. */
  answers: { at: number };
  /** Called when the runner has obeyed a later leader than this one. */
  onLaterEpoch(epoch: number): void;
  /** Counters of refused frames, over all pods. */
  refused?: DecoderCounters | undefined;
}

const PING_MS = 30_000;
/**
 * Age of a running turn at the first ping for its progress; later pings come every `PING_MS`, also while frames come.
 */
const FIRST_FIGURES_MS = 10_000;
/** Time before a gap is asked for again: frames already on their way when a resend was asked for show the same gap. */
const RESEND_AGAIN_MS = 1_000;

/**
 * The controller's end of the boundary with one pod: asks for missed frames and shows the runner's messages as a
 * `LinkView`. It decides nothing.
 */
export class Link {
  view: LinkView;
  readonly #options: LinkOptions;
  readonly #decoder: FrameDecoder;
  readonly #attachment: Attachment;
  readonly #inbox = new Inbox();
  readonly #binding: Binding;
  #acked = 0;
  /** True once this attach has had its `ready`; the empty lines that begin an attach can produce more than one. */
  #greeted = false;
  /** Last sequence number sent before the present attach: frames up to it come late, or again. */
  #past = 0;
  /** Numbers of control lines: the last that gave a turn, and the last that gave one or acknowledged the end of one. */
  #turnNumber = 0;
  #changeNumber = 0;
  /** Number of the last control line that cancels a turn, and that turn. */
  #cancelNumber = 0;
  #cancelled = '';
  /** Options of the snapshot asked for with the suspension, if any. */
  #wanted: ControlMessages['snapshot'] | undefined;
  /** Numbers of unanswered pings: an earlier leader's answers come over the same attach. */
  readonly #pings = new Set<number>();
  #cancelPing: () => void = () => {};
  /** Time of the last frame, and of the next ping for the running turn's progress (monotonic milliseconds). */
  #heardAt = 0;
  #figuresAt = Number.POSITIVE_INFINITY;
  /** Last frame known to be missing when a resend was last asked for, and the time of that (monotonic milliseconds). */
  #resent = { through: 0, at: 0 };
  #cancelResend: () => void = () => {};

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#decoder = new FrameDecoder({ validate: validateFrame, counters: options.refused });
    this.#binding = new Binding({
      ...options,
      podUID: options.pod.uid,
      onKeys: (channel) => this.#decoder.setChannel(channel),
    });
    this.#attachment = new Attachment({
      ...options,
      onOpen: () => {
        this.#greeted = false;
        this.#pings.clear();
      },
      onBytes: (chunk) => this.#handle(this.#decoder.push(chunk)),
      onChange: () => {
        this.#updateSilence();
        options.onChange();
      },
    });
    this.view = {
      podUID: options.pod.uid,
      openedAt: latestTime(options.clock),
      phase: 'Opening',
      sent: new Set(),
      resumed: false,
      fresh: false,
      suspendSent: false,
      suspended: false,
    };
  }

  /** UID of the session that the pod was made for. */
  get session(): string {
    return this.#options.session;
  }

  /** The incarnation that the pod was made for. */
  get incarnation(): number {
    return this.#options.incarnation;
  }

  /** Boot nonce of the pod's runner, once known. */
  get boot(): string | undefined {
    return this.#binding.boot;
  }

  /** Begins to attach; `scheduled` and `running` are the known facts about the pod. */
  open(pod: { scheduled: boolean; running: boolean; fresh?: boolean }): void {
    if (pod.fresh) this.view = { ...this.view, fresh: true };
    this.#attachment.open(pod);
  }

  podChanged(pod: { scheduled: boolean }): void {
    this.#attachment.podChanged(pod);
  }

  close(): void {
    this.#figuresAt = Number.POSITIVE_INFINITY;
    this.#cancelPing();
    this.#cancelResend();
    this.#attachment.close();
  }

  // -------------------------------------------------------------------------------------------------------- down

  /**
   * Answers `ready` of an unbound runner; `restore` follows at once where there is a state. Repeated for a bound runner
   * that lacks its whole state, as its refusal shows; the suspension that it refused meanwhile is asked for again.
   */
  bind(bind: Omit<Bind, 'keys'>, sealedState?: { digest: string; keyId: string; sealed: Buffer }): void {
    const begun = this.#binding.begin();
    if (!begun) return;
    const { boot, keys } = begun;
    const { refused: _, ...rest } = this.view;
    this.view = { ...rest, phase: 'Binding', bindSentAt: latestTime(this.#options.clock) };
    this.#attachment.write(bindText(boot, this.#position(), { ...bind, keys }));
    if (sealedState) {
      const { sealed, ...facts } = sealedState;
      this.#send('restore', facts, sealed);
    }
    if (rest.suspendSent && !rest.snapshot) this.#sendSuspend();
    this.#expectAnswer();
    this.#options.onChange();
  }

  startTurn(turn: ControlMessages['turn']): void {
    this.#deliver(turn.turn, undefined, () => this.#send('turn', turn));
  }

  /** Sends the decision to the process that waits for it, or resumes the turn in a new one. */
  resumeTurn(turn: ControlMessages['approval']): void {
    this.#deliver(turn.turn, turn.approval.requestId, () => this.#send('approval', turn));
  }

  #deliver(turn: string, told: string | undefined, send: () => number): void {
    if (!this.#binding.hasKeys) return;
    const { told: _, ...rest } = this.view;
    const sent = new Set([...rest.sent, turn]);
    this.view = { ...rest, sent, active: turn, ...(told === undefined ? {} : { told }) };
    this.#turnNumber = send();
    this.#changeNumber = this.#turnNumber;
    this.#expectAnswer();
  }

  /** Cancels a turn; `why` is set when Berth cancels it unasked. */
  cancel(turn: string, why?: 'LifetimeExceeded'): void {
    const { refused, ...rest } = this.view;
    // The refusal of an earlier cancel does not apply to this one.
    if (refused?.code === 'UnknownTurn') this.view = rest;
    const cancelled = [turn, { at: latestTime(this.#options.clock), ...(why ? { why } : {}) }] as const;
    this.#change({ cancelSent: new Map([...(this.view.cancelSent ?? []), cancelled]) });
    this.#sendCancel(...cancelled);
    this.#expectAnswer();
  }

  /**
   * Asks the runner to refuse turns from now on, which `view.suspended` shows together with its last activity, and to
   * hand over its state where that is wanted, which appears as `view.snapshot`.
   */
  suspend(wanted: ControlMessages['snapshot'] | undefined): void {
    this.#wanted = wanted;
    const { refused: _, snapshot: __, ...rest } = this.view;
    this.view = { ...rest, suspendSent: true, suspended: false };
    this.#sendSuspend();
    this.#expectAnswer();
  }

  #sendSuspend(): void {
    this.#send('suspend', {});
    this.#ping();
    if (this.#wanted) this.#send('snapshot', this.#wanted);
  }

  #sendCancel(turn: string, { why }: { why?: 'LifetimeExceeded' }): void {
    const stop = why ? { turn, outcome: 'TimedOut' as const, reason: why } : { turn, outcome: 'Cancelled' as const };
    this.#cancelNumber = this.#send('cancel', stop);
    this.#cancelled = turn;
  }

  resume(): void {
    const { snapshot, active, ...rest } = this.view;
    // A refused turn is sent again.
    const kept = active !== undefined && rest.sent.has(active) ? { active } : {};
    this.view = { ...rest, ...kept, suspendSent: false, suspended: false };
    this.#send('resume', {});
    if (snapshot) this.acknowledge(snapshot.seq);
    this.#options.onChange();
  }

  /** Acknowledges everything through this frame: it is stored, and the runner may forget it. */
  acknowledge(through: number): void {
    this.#acked = Math.max(this.#acked, through);
    this.#inbox.forget(through);
    const isEnd = endedBy(this.view, through) !== undefined;
    this.view = acknowledged(this.view, through);
    const number = this.#send('ack', { through });
    if (isEnd) this.#changeNumber = number;
    // An ended turn needs no more pings for its progress.
    if (!this.view.started && Number.isFinite(this.#figuresAt)) this.#askForFigures(Number.POSITIVE_INFINITY);
    this.#change(this.#inbox.next());
  }

  /**
   * Reads the frames of an ended container from its log. Frames missing there will not come. A log also holds the ends
   * of earlier turns, which were committed before the next was given, so only the last one counts.
   */
  takeLog(log: Buffer): void {
    const text = this.#binding.framesIn(log);
    if (!text) return;
    // Frames in a log prove that the runner was bound.
    this.view = { ...this.view, resumed: true };
    this.#past = Number.POSITIVE_INFINITY;
    for (let events = this.#decoder.push(text); ; events = this.#decoder.push(text)) {
      const gap = events.find((event) => event.type === 'gap');
      this.#handle(events.filter((event) => event !== gap));
      if (!gap) break;
      this.#decoder.skipTo(gap.to + 1);
    }
    this.#inbox.keepLast();
    const { delivery: _, asking: __, ...rest } = this.view;
    this.view = rest;
    this.#change(this.#inbox.next());
  }

  #send<K extends Exclude<ControlKind, 'bind'>>(kind: K, message: ControlMessages[K], binary?: Buffer): number {
    const position = this.#position();
    const lines = this.#binding.seal(position, kind, message, binary);
    if (lines) this.#attachment.write(lines);
    return position.n;
  }

  #position(): { epoch: number; n: number } {
    return { epoch: this.#options.epoch(), n: this.#options.nextNumber() };
  }

  #expectAnswer(): void {
    this.#attachment.expectAnswer();
    this.#updateSilence();
  }

  #answered(): void {
    this.#attachment.answered();
    this.#options.answers.at = this.#options.clock.monotonic();
    this.#updateSilence();
    this.#heardAt = this.#options.clock.monotonic();
    this.#pingLater();
  }

  #askForFigures(inMs: number): void {
    this.#figuresAt = this.#options.clock.monotonic() + inMs;
    this.#pingLater();
  }

  #pingLater(): void {
    const { clock } = this.#options;
    const at = Math.min(this.#heardAt + PING_MS, this.#figuresAt);
    const forFigures = at < this.#heardAt + PING_MS;
    this.#cancelPing();
    this.#cancelPing = clock.setTimer(Math.max(0, at - clock.monotonic()), () => {
      // Frames that come before the answer must not trigger another ping.
      if (Number.isFinite(this.#figuresAt)) this.#figuresAt = clock.monotonic() + PING_MS;
      this.#ping();
      // A ping for progress alone expects no answer in time: the machine may be busy with the turn.
      if (forFigures) this.#pingLater();
      else this.#expectAnswer();
    });
  }

  /** Updates the view's overdue answer and failed attaches. */
  #updateSilence(): void {
    const { silentSince, failingMs, failingSince = Number.POSITIVE_INFINITY } = this.#attachment;
    const { silentSince: before, unreachableMs = 0, othersAnswer: _, ...rest } = this.view;
    if (before === silentSince && unreachableMs === failingMs) return;
    this.view = {
      ...rest,
      ...(silentSince === undefined ? {} : { silentSince }),
      ...(failingMs === 0 ? {} : { unreachableMs: failingMs, othersAnswer: this.#options.answers.at >= failingSince }),
    };
  }

  // -------------------------------------------------------------------------------------------------------- up

  #handle(events: FrameEvent[]): void {
    for (const event of events) {
      if (event.type === 'ready') this.#ready(event.ready);
      else if (event.type === 'gap') this.#missing(event);
      else if (event.type === 'frame') this.#frame(event.frame);
      else if (event.type === 'malformed') {
        const { seq, kind, problem } = event;
        this.#options.log.warn({ pod: this.#options.pod.name, seq, kind, problem }, 'a pod sent what is no message');
      }
    }
  }

  #missing({ from, to }: { from: number; to: number }): void {
    const { clock } = this.#options;
    const now = clock.monotonic();
    const again = this.#resent.at + RESEND_AGAIN_MS;
    this.#cancelResend();
    if (from > this.#resent.through || now >= again) {
      this.#resent = { through: to, at: now };
      this.#send('resend', { from });
      return;
    }
    // The missing frames come, or they were torn as well.
    this.#cancelResend = clock.setTimer(again - now, () => {
      if (this.#decoder.next <= to) this.#missing({ from: this.#decoder.next, to });
    });
  }

  /** Handles `ready`. Whether the runner still has this link's keys shows in whether its frames open. */
  #ready(ready: Ready): void {
    if (ready.session === undefined) this.#answered();
    // A second `ready` is no answer to what was asked after the first.
    else if (!this.#greeted) this.#attachment.heard();
    if (ready.epoch > this.#options.epoch()) {
      // A runner with a later epoch refuses every line; a later attach works once this leader's epoch is raised.
      this.#options.onLaterEpoch(ready.epoch);
      this.#attachment.reattach();
      return;
    }
    if (this.#greeted) return;
    this.#greeted = true;
    const facts = { protocol: ready.protocol, runnerVersion: ready.runnerVersion };
    const whose = this.#binding.recognize(ready);
    if (whose !== 'Ours') {
      this.#change({ ...facts, phase: whose });
      return;
    }
    this.view = { ...this.view, resumed: this.#binding.resume(ready.boot, this.view.resumed) };
    this.#past = ready.lastSeq;
    if (this.#acked > 0) this.#send('ack', { through: this.#acked });
    this.#send('resend', { from: this.#decoder.next });
    // Lines sent over a broken attach may be lost; they are idempotent, so they are sent again.
    const { cancelSent, suspendSent, snapshot } = this.view;
    for (const cancelled of cancelSent ?? []) this.#sendCancel(...cancelled);
    if (suspendSent && !snapshot) this.#sendSuspend();
    this.#ping();
    this.#expectAnswer();
    this.#change(facts);
  }

  #frame(frame: Frame): void {
    this.#binding.proven();
    this.#answered();
    switch (frame.kind) {
      case 'bound':
        // A ping asks for the runner's activity: only the runner knows whether it is idle.
        this.#ping();
        this.#change({ phase: 'Bound', bound: frame.message });
        break;
      case 'started':
        this.#clearNotRestored();
        this.#change(started(this.view, frame.message.turn, latestTime(this.#options.clock)));
        this.#askForFigures(FIRST_FIGURES_MS);
        break;
      case 'log':
      case 'state':
      case 'result':
      case 'approval':
        this.#keep(frame);
        break;
      case 'pong':
        // An old pong does not show the present: above all not whether the runner is suspended, and since when.
        if (frame.seq <= this.#past) this.view = remembered(this.view, frame.message);
        else this.#pong(frame.message);
        this.#options.onChange();
        break;
      case 'refused':
        this.#options.log.warn({ pod: this.#options.pod.name, ...frame.message }, 'runner refused a control line');
        // The runner's next `ready` names the epoch that it obeys.
        if (frame.message.code === 'StaleEpoch') this.#attachment.reattach();
        if (frame.message.n === this.#turnNumber) this.view = turnRefused(this.view, frame.message.code);
        if (frame.message.n === this.#cancelNumber) {
          this.#notRunning();
          // The refused cancel shows that its turn does not run; a ping asks which one does.
          this.#ping();
        }
        this.#change({ refused: frame.message });
        break;
      case 'bye':
        this.#change({ phase: 'Ended' });
        break;
      default:
        break;
    }
  }

  /** Forgets the turn that the runner was to stop and does not have. The answer to the ping that follows may be lost. */
  #notRunning(): void {
    const { active, ...rest } = this.view;
    if (active === this.#cancelled && this.#turnNumber < this.#cancelNumber) this.view = rest;
  }

  #ping(): void {
    this.#pings.add(this.#send('ping', {}));
  }

  #pong(pong: Pong): void {
    if (this.#pings.delete(pong.n)) this.view = { ...this.view, answered: true };
    this.view = answered(this.view, pong, this.#changeNumber, this.#options.clock.now());
    const { figures } = this.view;
    const early = figures ? FIRST_FIGURES_MS - figures.runningMs : Number.POSITIVE_INFINITY;
    this.#askForFigures(early > 0 ? early : PING_MS);
  }

  /**
   * Clears a NotRestored refusal: a runner that has begun a turn has its state, and a later refusal must count again.
   */
  #clearNotRestored(): void {
    const { refused, ...rest } = this.view;
    if (refused?.code === 'NotRestored') this.view = rest;
  }

  #keep(frame: Parameters<Inbox['add']>[0]): void {
    this.#inbox.add(frame);
    if (frame.kind === 'state' && frame.message.turn === undefined) this.#change({ snapshot: frame });
    else this.#change(this.#inbox.next());
  }

  #change(patch: Partial<LinkView>): void {
    this.view = { ...this.view, ...patch };
    this.#options.onChange();
  }
}
