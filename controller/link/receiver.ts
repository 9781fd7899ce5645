import { FrameDecoder, type FrameEvent } from '../../core/frames/decode.ts';
import type { FrameKind, FrameOf, Ready, Refused } from '../../core/frames/messages.ts';
import type { Address } from '../../core/frames/wire.ts';
import { latestTime } from '../../core/runtime.ts';
import type { Holder } from './held-bytes.ts';
import { Inbox } from './inbox.ts';
import type { LinkOptions } from './options.ts';
import type { LinkParts } from './parts.ts';
import type { Requests } from './requests.ts';
import { Resend } from './resend.ts';
import type { Throttle } from './throttle.ts';
import * as after from './view.ts';

export interface ReceiverOptions
  extends Pick<LinkOptions, 'clock' | 'log' | 'pod' | 'refused' | 'held' | 'logs' | 'counters'>,
    Pick<LinkParts, 'shown' | 'binding' | 'lines' | 'heartbeat'> {
  requests: Requests;
  throttle: Throttle;
  onReady(ready: Ready): void;
  /** Handler of a line that the runner has refused because it obeys a later leader. */
  onStaleEpoch(): void;
}

/** Messages of a log that are handled before others have their turn. */
const MESSAGES_AT_ONCE = 64;

/** Handles a frame of this kind. */
type Handler<K extends FrameKind> = (to: Receiver, frame: FrameOf<K>, bytes: number) => void;

const ignored = (): void => {};

/** Takes the runner's messages in their order, asks for those that are missing, and keeps them until they are acknowledged. */
export class Receiver {
  readonly #options: ReceiverOptions;
  readonly #decoder: FrameDecoder;
  readonly #inbox = new Inbox();
  readonly #holder: Holder;
  readonly #resend: Resend;
  #acked = 0;
  /** Last sequence number sent before the present attach: frames up to it come late, or again. */
  #past = 0;
  #isClosed = false;

  constructor(options: ReceiverOptions) {
    const { clock, log, pod, held, refused, shown, binding, lines } = options;
    this.#options = options;
    this.#decoder = new FrameDecoder({
      counters: refused,
      takeRoom: (bytes) => this.#holder.take(bytes),
    });
    this.#holder = held.open({
      isComplete: () => Boolean(shown.view.delivery || shown.view.asking || shown.view.snapshot),
      onRoom: (waitedMs) => {
        shown.view = after.delayed(shown.view, waitedMs);
        lines.send('resend', { from: this.#decoder.next });
        shown.changed();
      },
      onLost: () => {
        log.warn(
          { pod: pod.name, namespace: pod.namespace, session: binding.session },
          'messages of a pod that make no result gave up their memory to those of others',
        );
        // What was handled already comes once more, and shows the past.
        this.#past = this.last;
        this.#decoder.rewindTo(this.#inbox.first ?? this.#decoder.next);
        this.#inbox.clear();
        shown.changed();
      },
    });
    this.#resend = new Resend({
      clock,
      next: () => this.#decoder.next,
      ask: (from) => lines.send('resend', { from }),
    });
  }

  /** Last sequence number that the runner is known to have sent. */
  get last(): number {
    return Math.max(this.#past, this.#decoder.next - 1);
  }

  get isWaiting(): boolean {
    return this.#holder.isWaiting;
  }

  /** Milliseconds for which a message has waited for room; undefined while none does. */
  get waitedMs(): number | undefined {
    return this.#holder.waitedMs;
  }

  /** Sets the sender of all frames from now on, and the key by which they open. */
  setChannel(channel: Address & { key: Buffer }): void {
    this.#decoder.setChannel(channel);
  }

  /** Acknowledges anew and asks for what is missing: the runner has sent frames up to `lastSeq` before the present attach. */
  reopened(lastSeq: number): void {
    const { lines } = this.#options;
    this.#past = lastSeq;
    if (this.#acked > 0) lines.send('ack', { through: this.#acked });
    if (!this.#holder.isWaiting) lines.send('resend', { from: this.#decoder.next });
  }

  close(): void {
    this.#isClosed = true;
    this.#resend.close();
    this.#holder.close();
  }

  push(chunk: Buffer): void {
    this.#handle(this.#decoder.push(chunk));
    this.#options.throttle.spend(this.#decoder.takeSpent());
  }

  /** Acknowledges everything through this frame: it is stored, and the runner may forget it. */
  acknowledge(through: number): void {
    const { shown, lines, requests, throttle, heartbeat } = this.#options;
    this.#acked = Math.max(this.#acked, through);
    this.#inbox.forget(through);
    this.#holder.acknowledged();
    const ended = after.endedBy(shown.view, through);
    shown.view = after.acknowledged(shown.view, through);
    const number = lines.send('ack', { through });
    if (ended !== undefined && requests.ended(ended, number)) throttle.ended();
    if (!shown.view.started) heartbeat.turnEnded();
    this.#deliver();
    this.#holder.keep(this.#inbox.bytes);
  }

  /**
   * Reads the frames of an ended container from its log. Frames missing there will not come. A log also holds the ends
   * of earlier turns, which were committed before the next was given, so only the last one counts. Resolves once all is read.
   */
  async takeLog(log: Buffer): Promise<void> {
    const { logs, binding, shown } = this.#options;
    await logs.read(async (pause) => {
      const messages = await binding.messagesIn(log, { pause, onCut: () => this.#logCut(log.length) });
      if (!messages) return;
      shown.view = after.logOpened(shown.view);
      this.#past = Number.POSITIVE_INFINITY;
      for (const [index, message] of messages.entries()) {
        if (index % MESSAGES_AT_ONCE === MESSAGES_AT_ONCE - 1) await pause();
        if (this.#isClosed) return;
        this.#handle(this.#decoder.take(message));
      }
      this.#inbox.keepLast();
      this.#holder.keep(this.#inbox.bytes);
      this.#deliver();
    });
  }

  #logCut(bytes: number): void {
    const { log, pod, counters, binding } = this.#options;
    log.warn(
      { pod: pod.name, namespace: pod.namespace, session: binding.session, bytes },
      'the beginning of the log of an ended container is not read: it is full of text that looks like frames',
    );
    if (counters) counters.logsCut += 1;
  }

  #handle(events: FrameEvent[]): void {
    const { heartbeat, log, pod, onReady } = this.#options;
    for (const event of events) {
      if (event.type === 'ready') onReady(event.ready);
      else if (event.type === 'gap' && !this.#holder.isWaiting) this.#resend.missing(event);
      // A runner whose message waits for room is heard, and asked for the message once there is room.
      else if (event.type === 'gap' || event.type === 'noRoom') heartbeat.heard();
      else if (event.type === 'frame') this.#frame(event.frame, event.bytes);
      else if (event.type === 'malformed') {
        const { seq, kind, problem } = event;
        log.warn({ pod: pod.name, seq, kind, problem }, 'a pod sent an invalid message');
      }
    }
  }

  static readonly #HANDLERS: { readonly [K in FrameKind]: Handler<K> } = {
    // The decoder shows it as an event of its own.
    ready: ignored,
    bound: (to, { message }) => {
      const { shown, heartbeat } = to.#options;
      // A ping asks for the runner's activity: only the runner knows whether it is idle.
      heartbeat.ping();
      shown.change(after.bound(shown.view, message));
    },
    started: (to, { message }) => {
      const { shown, heartbeat, clock } = to.#options;
      shown.change(after.started(shown.view, message.turn, latestTime(clock)));
      heartbeat.turnStarted();
    },
    log: (to, frame, bytes) => to.#keep(frame, bytes),
    state: (to, frame, bytes) => to.#keep(frame, bytes),
    artifacts: (to, frame, bytes) => to.#keep(frame, bytes),
    result: (to, frame, bytes) => to.#keep(frame, bytes),
    approval: (to, frame, bytes) => to.#keep(frame, bytes),
    // Older runners print it, too.
    event: ignored,
    pong: (to, frame) => to.#pong(frame),
    // The decoder shows it as an event of its own.
    dropped: ignored,
    refused: (to, { message }) => {
      const { log, pod, requests, onStaleEpoch } = to.#options;
      log.warn({ pod: pod.name, ...message }, 'runner refused a control line');
      if (message.code === 'StaleEpoch') onStaleEpoch();
      requests.refused(message);
    },
    bye: (to) => {
      const { shown } = to.#options;
      shown.change(after.ended(shown.view));
    },
  };

  #frame<K extends FrameKind>(frame: FrameOf<K>, bytes: number): void {
    const { binding, heartbeat } = this.#options;
    binding.proven();
    // The refusal of all lines is no answer to any.
    const isRefusal = frame.kind === 'refused' && (frame.message as Refused).code === 'StaleEpoch';
    if (!isRefusal) heartbeat.heard();
    const handle: Handler<K> = Receiver.#HANDLERS[frame.kind];
    handle(this, frame, bytes);
    // The message has come, even if nothing of it is kept.
    this.#holder.keep(this.#inbox.bytes);
  }

  #pong({ seq, message }: FrameOf<'pong'>): void {
    const { shown, heartbeat, requests, clock } = this.#options;
    // An old pong does not show the present: above all not whether the runner is suspended, and since when.
    if (seq <= this.#past) {
      shown.change(after.remembered(shown.view, message));
      return;
    }
    const isOurs = heartbeat.answers(message.n);
    const { changeNumber } = requests;
    shown.view = after.answered(shown.view, message, { isOurs, changeNumber, now: clock.now() });
    heartbeat.reported(shown.view.figures);
    shown.changed();
  }

  #keep(frame: Parameters<Inbox['add']>[0], bytes: number): void {
    const { shown, requests } = this.#options;
    const isSnapshot = frame.kind === 'state' && frame.message.turn === undefined;
    // A later acknowledgement covers the frame of a snapshot that nobody wants.
    if (isSnapshot && !requests.isWanted(frame)) return;
    this.#inbox.add(frame, bytes);
    if (isSnapshot) shown.change(after.snapshotTaken(shown.view, frame));
    else this.#deliver();
  }

  /** Shows the result or request that is committed next. */
  #deliver(): void {
    const { shown } = this.#options;
    shown.change(after.delivered(shown.view, this.#inbox.next()));
  }
}
