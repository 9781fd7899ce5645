import { createHash } from 'node:crypto';
import { FrameDecoder, type FrameEvent } from '../../core/frames/decode.ts';
import { ASK_READY, bindText, type Position } from '../../core/frames/encode.ts';
import type {
  Bind,
  ControlMessages,
  FrameKind,
  FrameOf,
  Ready,
  Refused,
  SessionControlKind,
} from '../../core/frames/messages.ts';
import { validateFrame } from '../../core/frames/validate.ts';
import { latestTime } from '../../core/runtime.ts';
import type { LinkView } from '../observed/link-view.ts';
import { Attachment } from './attachment.ts';
import { Binding } from './binding.ts';
import { Heartbeat } from './heartbeat.ts';
import { HeldBytes, type Holder } from './held-bytes.ts';
import { Inbox } from './inbox.ts';
import { LogReader } from './log-reader.ts';
import type { Contents, LinkOptions } from './options.ts';
import { Resend } from './resend.ts';
import { Throttle } from './throttle.ts';
import * as after from './view.ts';

/** Messages of a log that are handled before others get on. */
const MESSAGES_AT_ONCE = 64;

/** Handles a frame of this kind for the link. */
type Handler<K extends FrameKind> = (link: Link, frame: FrameOf<K>, bytes: number) => void;

const ignored = (): void => {};

/**
 * The controller's end of the boundary with one pod: asks for missed frames and shows the runner's messages as a
 * `LinkView`. It decides nothing.
 */
export class Link {
  readonly #options: LinkOptions;
  readonly #decoder: FrameDecoder;
  readonly #attachment: Attachment;
  readonly #inbox = new Inbox();
  readonly #binding: Binding;
  readonly #heartbeat: Heartbeat;
  readonly #resend: Resend;
  readonly #logs: LogReader;
  readonly #holder: Holder;
  readonly #throttle: Throttle;
  /** Changed only by the functions of view.ts. */
  #view: LinkView;
  #acked = 0;
  /** True once this attach has had its `ready`; the empty lines that begin an attach can produce more than one. */
  #greeted = false;
  /** The runner says, without a proof, that it obeys a later leader. If it does, it refuses every line, and owes its answers. */
  #outranked = false;
  /** Last sequence number sent before the present attach: frames up to it come late, or again. */
  #past = 0;
  #isClosed = false;
  /** Numbers of control lines: the last that gave a turn, and the last that gave one or acknowledged the end of one. */
  #turnNumber = 0;
  #changeNumber = 0;
  /** UID of the last turn that was given and whose end is not acknowledged. */
  #given: string | undefined;
  /** Time of the last control line besides pings, monotonic milliseconds. */
  #toldAt: number;
  /** Turns that were cancelled over this attach, by the numbers of the control lines. */
  readonly #cancels = new Map<number, string>();
  #session: string;
  #incarnation: number;
  /** This leader has created the pod. */
  #isCreated = false;
  /** UIDs of sessions for which this leader has sent a claim of the pod that is not known to have failed. */
  readonly #claims = new Set<string>();
  /** Last sequence number that the runner had sent when it was asked to suspend: a snapshot up to it is an earlier one. */
  #askedAfter = 0;
  /** Options of the snapshot asked for with the suspension, if any. */
  #wanted: ControlMessages['snapshot'] | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#throttle = new Throttle({
      ...options,
      session: () => this.#session,
      pause: (ms) => this.#attachment.pause(ms),
    });
    this.#logs = options.logs ?? new LogReader(options.clock);
    this.#session = options.session;
    this.#incarnation = options.incarnation;
    this.#decoder = new FrameDecoder({
      validate: validateFrame,
      counters: options.refused,
      takeRoom: (bytes) => this.#holder.take(bytes),
    });
    this.#holder = (options.held ?? new HeldBytes(options.clock)).open({
      isComplete: () => Boolean(this.#view.delivery || this.#view.asking || this.#view.snapshot),
      onRoom: (waitedMs) => {
        this.#view = after.delayed(this.#view, waitedMs);
        this.#send('resend', { from: this.#decoder.next });
        options.onChange();
      },
      onLost: () => {
        options.log.warn(
          { pod: options.pod.name, namespace: options.pod.namespace, session: this.#session },
          'messages of a pod that make no result gave up their memory to those of others',
        );
        // What was handled already comes once more, and shows the past.
        this.#past = Math.max(this.#past, this.#decoder.next - 1);
        this.#decoder.rewindTo(this.#inbox.first ?? this.#decoder.next);
        this.#inbox.clear();
        options.onChange();
      },
    });
    this.#binding = new Binding({
      ...options,
      podUID: options.pod.uid,
      onKeys: (channel) => this.#decoder.setChannel(channel),
    });
    this.#attachment = new Attachment({
      ...options,
      hurried: options.session !== '',
      onOpen: () => {
        this.#greeted = false;
        this.#outranked = false;
        this.#heartbeat.opened();
        options.silences.update(this.#attachment.node, this, true);
      },
      onBytes: (chunk) => this.#read(chunk),
      onChange: () => {
        this.#heartbeat.updateSilence();
        options.onChange();
      },
      onDelay: (ms) => {
        this.#view = after.delayed(this.#view, ms);
      },
    });
    this.#heartbeat = new Heartbeat({
      clock: options.clock,
      answers: options.answers,
      attachment: this.#attachment,
      sendPing: () => this.#sendPing(),
      restAt: () =>
        after.isAtRest(this.#view) && !this.#holder.isWaiting
          ? this.#toldAt + options.lingerMs
          : Number.POSITIVE_INFINITY,
      rest: () => this.#attachment.rest(),
      onHeard: () => options.silences.heard(this.#attachment.node, this),
      onSilence: (silence) => {
        options.silences.update(this.#attachment.node, this, silence.silentSince !== undefined);
        this.#view = after.silent(this.#view, silence);
      },
    });
    this.#resend = new Resend({
      clock: options.clock,
      next: () => this.#decoder.next,
      ask: (from) => this.#send('resend', { from }),
    });
    this.#view = after.unopened(options.pod.uid, latestTime(options.clock));
    this.#toldAt = options.clock.monotonic();
  }

  get view(): LinkView {
    const { queuedMs = this.#holder.waitedMs, silentSince } = this.#attachment;
    const view = silentSince === undefined ? this.#view : this.#silentFrom(silentSince);
    return queuedMs === undefined ? view : { ...after.delayed(view, queuedMs), queued: true };
  }

  #silentFrom(since: number): LinkView {
    return after.silentFrom(this.#view, since, this.#options.silences.of(this.#attachment.node, this));
  }

  /** UID of the session that the pod belongs to; empty for a pod that no session has claimed. */
  get session(): string {
    return this.#session;
  }

  /** The incarnation that the pod belongs to. */
  get incarnation(): number {
    return this.#incarnation;
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
    if (pod.fresh) this.#view = after.openedFresh(this.#view);
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
    this.#session = session;
    this.#incarnation = incarnation;
    this.#throttle.assigned();
    this.#binding.assign(session, incarnation);
    const { phase } = this.#view;
    // The runner of a pod that this leader has claimed has got nothing from anybody else.
    const isNew = phase === 'Unbound' || (phase === 'Opening' && this.#isCreated);
    this.#view = { ...this.#view, fresh: isNew && this.#claims.has(session) };
    this.#attachment.hurry();
    // The runner is asked again: who has bound it may have been another leader.
    if (this.#view.phase !== 'Unbound' && !this.#view.fresh) this.#attachment.reattach();
  }

  podChanged(pod: { scheduled: boolean; deleted: boolean; node?: string | undefined }): void {
    this.#attachment.podChanged(pod);
  }

  /** Asks for the priority of the attach again, while it waits for its place. */
  reconsider(): void {
    this.#attachment.reconsider();
  }

  close(): void {
    this.#isClosed = true;
    this.#heartbeat.close();
    this.#options.silences.update(this.#attachment.node, this, false);
    this.#resend.close();
    this.#holder.close();
    this.#throttle.close();
    this.#attachment.close();
  }

  // -------------------------------------------------------------------------------------------------------- down

  /**
   * Answers `ready` of an unbound runner; `restore` follows at once where there is a state. Repeated for a bound runner
   * that lacks its whole state, as its refusal shows; the suspension that it refused meanwhile is asked for again.
   */
  bind(bind: Omit<Bind, 'keys'>, { state, files = [], environment }: Contents = {}): void {
    const begun = this.#binding.begin();
    if (!begun) return;
    const { boot, keys } = begun;
    this.#view = after.bindSent(this.#view, latestTime(this.#options.clock));
    this.#attachment.write(bindText(boot, this.#position(), { ...bind, keys }));
    if (state) {
      const { sealed, ...facts } = state;
      this.#send('restore', facts, sealed);
    }
    if (environment) this.#send('environment', { digest: environment.digest }, environment.sealed);
    const version = files.length > 0 ? versionOf(files) : '';
    for (const [index, archive] of files.entries()) {
      this.#send('files', { version, index, count: files.length }, archive);
    }
    this.#suspendAgain();
    this.#heartbeat.expectAnswer();
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
    this.#given = turn;
    this.#view = after.turnSent(this.#view, turn, told);
    this.#turnNumber = send();
    this.#changeNumber = this.#turnNumber;
    this.#heartbeat.expectAnswer();
  }

  /** Cancels a turn; `why` is set when Berth cancels it unasked. */
  cancel(turn: string, why?: 'LifetimeExceeded'): void {
    const cancelled = { at: this.#options.clock.monotonic(), ...(why ? { why } : {}) };
    this.#change(after.cancelSent(this.#view, turn, cancelled));
    this.#sendCancel(turn, cancelled);
    this.#heartbeat.expectAnswer();
  }

  /**
   * Asks the runner to refuse turns from now on, which `view.suspended` shows together with its last activity, and to
   * hand over its state where that is wanted, which appears as `view.snapshot`.
   */
  suspend(wanted: ControlMessages['snapshot'] | undefined): void {
    this.#wanted = wanted;
    this.#askedAfter = Math.max(this.#past, this.#decoder.next - 1);
    this.#view = after.suspendSent(this.#view);
    this.#sendSuspend();
    this.#heartbeat.expectAnswer();
  }

  #sendSuspend(): void {
    this.#send('suspend', {});
    this.#heartbeat.ping();
    if (this.#wanted) this.#send('snapshot', this.#wanted);
  }

  /** Asks again for a suspension whose lines may be lost. */
  #suspendAgain(): void {
    if (this.#view.suspendSent && !this.#view.snapshot) this.#sendSuspend();
  }

  #sendCancel(turn: string, { why }: { why?: 'LifetimeExceeded' }): void {
    const stop = why ? { turn, outcome: 'TimedOut' as const, reason: why } : { turn, outcome: 'Cancelled' as const };
    this.#cancels.set(this.#send('cancel', stop), turn);
  }

  resume(): void {
    const { snapshot } = this.#view;
    this.#view = after.resumeSent(this.#view);
    this.#send('resume', {});
    if (snapshot) this.acknowledge(snapshot.seq);
    this.#options.onChange();
  }

  /** Notes that the turns were listed for a result of the pod, as no running turn is known that it fits. */
  stray(): void {
    this.#throttle.stray();
  }

  /** Acknowledges everything through this frame: it is stored, and the runner may forget it. */
  acknowledge(through: number): void {
    this.#acked = Math.max(this.#acked, through);
    this.#inbox.forget(through);
    this.#holder.acknowledged();
    const ended = after.endedBy(this.#view, through);
    this.#view = after.acknowledged(this.#view, through);
    const number = this.#send('ack', { through });
    if (ended !== undefined) {
      this.#changeNumber = number;
      if (ended === this.#given) this.#throttle.ended();
      this.#given = undefined;
    }
    if (!this.#view.started) this.#heartbeat.turnEnded();
    this.#change(after.delivered(this.#view, this.#inbox.next()));
    this.#holder.keep(this.#inbox.bytes);
  }

  /**
   * Reads the frames of an ended container from its log. Frames missing there will not come. A log also holds the ends
   * of earlier turns, which were committed before the next was given, so only the last one counts. Resolves once all is read.
   */
  async takeLog(log: Buffer): Promise<void> {
    await this.#logs.read(async (pause) => {
      const messages = await this.#binding.messagesIn(log, { pause, onCut: () => this.#logCut(log.length) });
      if (!messages) return;
      this.#view = after.logOpened(this.#view);
      this.#past = Number.POSITIVE_INFINITY;
      for (const [index, message] of messages.entries()) {
        if (index % MESSAGES_AT_ONCE === MESSAGES_AT_ONCE - 1) await pause();
        if (this.#isClosed) return;
        this.#handle(this.#decoder.take(message));
      }
      this.#inbox.keepLast();
      this.#holder.keep(this.#inbox.bytes);
      this.#change(after.delivered(this.#view, this.#inbox.next()));
    });
  }

  #logCut(bytes: number): void {
    const { log, pod, counters } = this.#options;
    log.warn(
      { pod: pod.name, namespace: pod.namespace, session: this.#session, bytes },
      'the beginning of the log of an ended container is not read: it is full of text that looks like frames',
    );
    if (counters) counters.logsCut += 1;
  }

  #send<K extends SessionControlKind>(kind: K, message: ControlMessages[K], binary?: Buffer): number {
    const position = this.#position();
    if (kind !== 'ping') this.#toldAt = this.#options.clock.monotonic();
    const lines = this.#binding.seal(position, kind, message, binary);
    if (lines) this.#attachment.write(lines);
    return position.n;
  }

  /** Sends a ping. For the runner of an unclaimed pod nothing can be sealed: an empty line asks for its `ready`. */
  #sendPing(): number {
    if (this.#session !== '') return this.#send('ping', {});
    this.#attachment.write([ASK_READY]);
    return 0;
  }

  #position(): Position {
    const epoch = this.#options.epoch();
    return { epoch, n: this.#options.nextNumber(), proof: this.#binding.proofOf(epoch) };
  }

  // -------------------------------------------------------------------------------------------------------- up

  #read(chunk: Buffer): void {
    this.#handle(this.#decoder.push(chunk));
    this.#throttle.spend(this.#decoder.takeSpent());
  }

  #handle(events: FrameEvent[]): void {
    for (const event of events) {
      if (event.type === 'ready') this.#ready(event.ready);
      else if (event.type === 'gap' && !this.#holder.isWaiting) this.#resend.missing(event);
      // A runner whose message waits for room is heard, and asked for the message once there is room.
      else if (event.type === 'gap' || event.type === 'noRoom') this.#heartbeat.heard();
      else if (event.type === 'frame') this.#frame(event.frame, event.bytes);
      else if (event.type === 'malformed') {
        const { seq, kind, problem } = event;
        this.#options.log.warn({ pod: this.#options.pod.name, seq, kind, problem }, 'a pod sent an invalid message');
      }
    }
  }

  /** Handles `ready`. Whether the runner still has this link's keys shows in whether its frames open. */
  #ready(ready: Ready): void {
    if (ready.session === undefined) this.#heartbeat.heard();
    // A second `ready` is no answer to what was asked after the first.
    else if (!this.#greeted) this.#attachment.heard();
    const isLater = ready.epoch > this.#options.epoch();
    if (isLater && this.#binding.isProven(ready)) {
      // A runner with a later epoch refuses every line; a later attach works once this leader's epoch is raised.
      this.#options.onLaterEpoch(ready.epoch);
      this.#attachment.reattach();
      return;
    }
    if (this.#greeted) return;
    this.#greeted = true;
    this.#outranked = isLater;
    const whose = this.#binding.recognize(ready);
    if (whose !== 'Ours') {
      this.#change(after.recognized(this.#view, ready, { phase: whose }));
      return;
    }
    const resumed = this.#binding.resume(ready.boot, this.#view.resumed);
    this.#view = after.recognized(this.#view, ready, { resumed });
    this.#past = ready.lastSeq;
    if (this.#acked > 0) this.#send('ack', { through: this.#acked });
    if (!this.#holder.isWaiting) this.#send('resend', { from: this.#decoder.next });
    // Lines sent over a broken attach may be lost; they are idempotent, so they are sent again.
    this.#cancels.clear();
    for (const [turn, cancelled] of this.#view.cancelSent ?? [])
      if (!cancelled.unknown) this.#sendCancel(turn, cancelled);
    this.#suspendAgain();
    this.#heartbeat.ping();
    this.#heartbeat.expectAnswer();
    this.#options.onChange();
  }

  static readonly #HANDLERS: { readonly [K in FrameKind]: Handler<K> } = {
    // The decoder shows it as an event of its own.
    ready: ignored,
    bound: (link, { message }) => {
      // A ping asks for the runner's activity: only the runner knows whether it is idle.
      link.#heartbeat.ping();
      link.#change(after.bound(link.#view, message));
    },
    started: (link, { message }) => {
      link.#change(after.started(link.#view, message.turn, latestTime(link.#options.clock)));
      link.#heartbeat.turnStarted();
    },
    log: (link, frame, bytes) => link.#keep(frame, bytes),
    state: (link, frame, bytes) => link.#keep(frame, bytes),
    artifacts: (link, frame, bytes) => link.#keep(frame, bytes),
    result: (link, frame, bytes) => link.#keep(frame, bytes),
    approval: (link, frame, bytes) => link.#keep(frame, bytes),
    // Older runners print it, too.
    event: ignored,
    pong: (link, frame) => link.#pong(frame),
    // The decoder shows it as an event of its own.
    dropped: ignored,
    refused: (link, { message }) => link.#refused(message),
    bye: (link) => link.#change(after.ended(link.#view)),
  };

  #frame<K extends FrameKind>(frame: FrameOf<K>, bytes: number): void {
    this.#binding.proven();
    // The refusal of all lines is no answer to any.
    const isRefusal = frame.kind === 'refused' && (frame.message as Refused).code === 'StaleEpoch';
    if (!isRefusal) this.#heartbeat.heard();
    const handle: Handler<K> = Link.#HANDLERS[frame.kind];
    handle(this, frame, bytes);
    // The message has come; what is kept of it is another matter.
    this.#holder.keep(this.#inbox.bytes);
  }

  #pong({ seq, message }: FrameOf<'pong'>): void {
    // An old pong does not show the present: above all not whether the runner is suspended, and since when.
    if (seq <= this.#past) {
      this.#change(after.remembered(this.#view, message));
      return;
    }
    const isOurs = this.#heartbeat.answers(message.n);
    const now = this.#options.clock.now();
    this.#view = after.answered(this.#view, message, { isOurs, changeNumber: this.#changeNumber, now });
    this.#heartbeat.reported(this.#view.figures);
    this.#options.onChange();
  }

  #refused(message: Refused): void {
    this.#options.log.warn({ pod: this.#options.pod.name, ...message }, 'runner refused a control line');
    // The runner's next `ready` names the epoch that it obeys, with the proof.
    if (message.code === 'StaleEpoch' && !this.#outranked) this.#attachment.reattach();
    if (message.n === this.#turnNumber) {
      this.#view = after.turnRefused(this.#view, message.code);
      // A busy runner may be free soon; the answer shows whether the turn has to be sent again.
      if (message.code === 'Busy') this.#heartbeat.ping();
    }
    const cancelled = this.#cancels.get(message.n);
    if (cancelled !== undefined) {
      // The answer to the ping that follows may be lost.
      if (this.#turnNumber < message.n) this.#view = after.cancelRefused(this.#view, cancelled, message.code);
      // The refused cancel shows that its turn does not run; a ping asks which one does.
      this.#heartbeat.ping();
    }
    this.#change(after.refused(this.#view, message));
  }

  #keep(frame: Parameters<Inbox['add']>[0], bytes: number): void {
    const isSnapshot = frame.kind === 'state' && frame.message.turn === undefined;
    // A snapshot for an earlier leader lacks what the session's processes wrote since. A later acknowledgement covers its frame.
    if (isSnapshot && (frame.seq <= this.#askedAfter || !this.#view.suspendSent || !this.#wanted)) return;
    this.#inbox.add(frame, bytes);
    if (isSnapshot) {
      this.#change(after.snapshotTaken(this.#view, frame));
    } else {
      this.#change(after.delivered(this.#view, this.#inbox.next()));
    }
  }

  #change(view: LinkView): void {
    this.#view = view;
    this.#options.onChange();
  }
}

/** Digest of archives in their order: equal for equal archives. */
function versionOf(archives: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const archive of archives) hash.update(createHash('sha256').update(archive).digest());
  return hash.digest('hex');
}
