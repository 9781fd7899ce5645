import { ASK_READY } from '../../core/frames/encode.ts';
import type { KubeApi, PodStream } from '../../core/kube/types.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import type { Clock, Logger } from '../../core/runtime.ts';
import type { AttachLimit, Leave, PendingAttach, Priority } from './attach-limit.ts';
import { AttachSchedule } from './schedule.ts';

export interface AttachmentOptions {
  api: Pick<KubeApi, 'attach'>;
  clock: Clock;
  log: Logger;
  pod: { namespace: string; name: string };
  /** Somebody waits for the pod; see `hurry`. */
  hurried: boolean;
  /** Limit of the attaches that are being opened, shared by all links. */
  limit: AttachLimit;
  /** Reports when the attach is opened among others to the same node. */
  priority(): Priority;
  /** Handler of a new attach that is open; `ready` is requested next. */
  onOpen(): void;
  /**
   * Handler of each chunk as it comes. The stream is drained unless it is paused, as a stalled reader blocks the container.
   */
  onBytes(chunk: Buffer): void;
  /** Handler of an answer that has become overdue, of the end of the attach, and of the beginning and end of the wait for its place. */
  onChange(): void;
  /** Handler of a pause, or of a wait for its place, of this many milliseconds in which nothing could be heard. */
  onDelay(ms: number): void;
}

/**
 * Times after which an open attach that owes an answer is closed and tried again: the first, the second and further attaches of one
 * silence. A connection that carries nothing is soon replaced by another, and a busy node gets time to answer.
 */
const ANSWER_MS = [5_000, 10_000, 15_000] as const;
const STABLE_MS = 10_000;
const NOTABLE_MS = 1_000;
/** Time of pauses that does not count against the pod: one that has to be paused for longer is to answer all the same. */
const MAX_FORGIVEN_MS = 60_000;

/** Keeps one pod attached until closed or at rest, writes to it in order, and notices when it does not answer. */
export class Attachment {
  readonly #options: AttachmentOptions;
  readonly #schedule: AttachSchedule;
  readonly #closed = new AbortController();
  #stream: PodStream | undefined;
  /** Texts for the next attach, while the attach is closed because there was nothing to send; undefined otherwise. */
  #waiting: string[] | undefined;
  /** Ends the wait for a text. */
  #wake: () => void = () => {};
  #writing: Promise<void> = Promise.resolve();
  /**
   * Present while the runner owes an answer. `since`: the moment from which its silence is counted, moved forward by the time without
   * an attach. `attaches`: the number of attaches that had no answer. `closedAt`: the end of the last attach, while none is open. Times are
   * monotonic milliseconds.
   */
  #silence: { since: number; attaches: number; closedAt?: number } | undefined;
  /** Start of the current run of failed attempts (monotonic milliseconds), and its length so far. */
  #failing: { since: number; ms: number } | undefined;
  /** True once the present attach has had an answer. */
  #answered = false;
  #cancelAnswer: () => void = () => {};
  #node = '';
  /** Time since which the attach has waited for its place, monotonic milliseconds, and its node. */
  #queuedSince: number | undefined;
  #queuedFor = '';
  readonly #pending: PendingAttach = {
    priority: () => (this.#waiting === undefined ? this.#options.priority() : 'WaitedFor'),
    isSilent: () => (this.#silence?.attaches ?? 0) > 0,
  };
  /** Gives back the place of the present attach on its node. */
  #leave: Leave = () => {};
  /** Ends the pause of the present attach. */
  #endPause: (() => void) | undefined;
  #forgivenMs = 0;
  /** Gives an owed answer its whole time again. */
  #renewAnswer: () => void = () => {};

  constructor(options: AttachmentOptions) {
    this.#options = options;
    this.#schedule = new AttachSchedule(options.clock, options);
  }

  /**
   * Time since which the pod has owed an answer over an open attach, monotonic milliseconds. It moves on while no attach is open, as
   * nothing can be heard then.
   */
  get silentSince(): number | undefined {
    if (!this.#silence) return undefined;
    const { since, closedAt } = this.#silence;
    return closedAt === undefined ? since : since + this.#options.clock.monotonic() - closedAt;
  }

  /**
   * Milliseconds from the first to the last of consecutive failed attempts: refused, cut off or unanswered; 0 while
   * there are none. Measured between attempts, so that a time without any does not count against the pod.
   */
  get failingMs(): number {
    return this.#failing?.ms ?? 0;
  }

  /** Start of these failed attempts, monotonic milliseconds. */
  get failingSince(): number | undefined {
    return this.#failing?.since;
  }

  /** Milliseconds for which the attach has waited for its place among those to its node; undefined when it does not. */
  get queuedMs(): number | undefined {
    return this.#queuedSince === undefined ? undefined : this.#options.clock.monotonic() - this.#queuedSince;
  }

  /** Name of the pod's node; empty before it is known. */
  get node(): string {
    return this.#node;
  }

  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  open(pod: { scheduled: boolean; running: boolean; node?: string | undefined }): void {
    this.#node = pod.node ?? '';
    if (pod.running) this.#schedule.opened();
    else if (pod.scheduled) this.#schedule.scheduled();
    void this.#stayAttached();
  }

  podChanged(pod: { scheduled: boolean; deleted: boolean; node?: string | undefined }): void {
    this.#node = pod.node ?? '';
    if (pod.deleted) this.#schedule.ends();
    if (pod.scheduled) this.#schedule.scheduled();
    else this.#schedule.changed();
  }

  /** Notes that somebody waits for the pod from now on. */
  hurry(): void {
    this.#schedule.hurry();
    this.reconsider();
  }

  /** Asks for the priority of the attach again, while it waits for its place. */
  reconsider(): void {
    if (this.#queuedSince !== undefined) this.#options.limit.reconsider(this.#queuedFor, this.#pending);
  }

  close(): void {
    this.#closed.abort();
    this.#cancelAnswer();
    this.#stream?.close();
  }

  /** Reads nothing for so many milliseconds, as the pod prints more than is read. */
  pause(ms: number): void {
    const stream = this.#stream;
    if (!stream || this.#endPause) return;
    const { clock, onDelay } = this.#options;
    const since = clock.monotonic();
    stream.pause();
    const cancelTimer = clock.setTimer(ms, () => {
      this.#endPause?.();
      stream.resume();
    });
    this.#endPause = () => {
      cancelTimer();
      this.#endPause = undefined;
      const pausedMs = clock.monotonic() - since;
      this.#forgivenMs += pausedMs;
      if (this.#forgivenMs > MAX_FORGIVEN_MS) return;
      if (this.#silence) this.#silence.since += pausedMs;
      this.#renewAnswer();
      onDelay(pausedMs);
    };
  }

  /** Closes the attach until there is a text to write. */
  rest(): void {
    const stream = this.#stream;
    if (!stream) return;
    this.#waiting = [];
    this.#stream = undefined;
    stream.close();
  }

  /** Closes the present attach. The next one begins anew, and asks again for an answer that is owed. */
  reattach(): void {
    this.#silence = undefined;
    this.#stream?.close();
  }

  /** Writes texts in order; a text that cannot be written is lost, and requested again after the next attach. */
  write(texts: Iterable<string>): void {
    if (this.#waiting) {
      this.#waiting.push(...texts);
      this.#wake();
      return;
    }
    const stream = this.#stream;
    if (!stream) return;
    this.#writing = this.#writing
      .then(async () => {
        for (const text of texts) {
          await stream.write(text);
          // The line that is answered may come after a large one.
          if (stream === this.#stream) this.#renewAnswer();
        }
      })
      .catch((error: unknown) => {
        this.#options.log.debug({ pod: this.#options.pod.name, err: error }, 'write to a pod failed');
        stream.close();
      });
  }

  expectAnswer(): void {
    const stream = this.#stream;
    if (!stream) return;
    const { clock, onChange } = this.#options;
    this.#silence ??= { since: clock.monotonic(), attaches: 0 };
    const silence = this.#silence;
    const renew = () => {
      this.#cancelAnswer();
      const cancelTimer = clock.setTimer(ANSWER_MS[Math.min(silence.attaches, ANSWER_MS.length - 1)] as number, () => {
        silence.attaches += 1;
        this.#leave();
        stream.close();
        onChange();
      });
      this.#renewAnswer = renew;
      this.#cancelAnswer = () => {
        cancelTimer();
        this.#renewAnswer = () => {};
      };
    };
    renew();
  }

  answered(): void {
    this.#leave();
    this.#cancelAnswer();
    this.#silence = undefined;
    this.#answered = true;
    this.#failing = undefined;
  }

  /** Output came, but not the answer that is owed. */
  heard(): void {
    this.#leave();
    this.#cancelAnswer();
  }

  #textToWrite(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done);
        this.#wake = () => {};
        this.#schedule.opened();
        resolve();
      };
      signal.addEventListener('abort', done);
      this.#wake = done;
    });
  }

  #failed(): void {
    const now = this.#options.clock.monotonic();
    this.#failing ??= { since: now, ms: 0 };
    this.#failing.ms = now - this.#failing.since;
    // The first fast attempts prove nothing.
    if (this.#failing.ms >= NOTABLE_MS) this.#options.onChange();
  }

  /** Waits until an attach to the node may be opened. All clocks stand still until then: the wait is not the pod's fault. */
  async #enter(signal: AbortSignal): Promise<Leave | undefined> {
    const { clock, limit, onChange, onDelay } = this.#options;
    const node = this.#node;
    const enter = () => limit.enter(node, this.#pending, signal);
    if (limit.hasRoom(node, this.#pending.priority(), this.#pending.isSilent?.())) return enter();
    this.#queuedSince = clock.monotonic();
    this.#queuedFor = node;
    const entered = enter();
    onChange();
    const leave = await entered;
    const ms = clock.monotonic() - this.#queuedSince;
    this.#queuedSince = undefined;
    if (this.#failing) this.#failing.since += ms;
    this.#schedule.delayed(ms);
    onDelay(ms);
    onChange();
    return leave;
  }

  async #stayAttached(): Promise<void> {
    const { api, clock, pod, log, onBytes, onChange } = this.#options;
    const { signal } = this.#closed;
    for (;;) {
      // A text to write is worth an attempt at once; further ones are paced.
      if (this.#waiting?.length === 0) await this.#textToWrite(signal);
      else await this.#schedule.wait(signal);
      const leave = await this.#enter(signal);
      if (!leave) return;
      this.#leave = leave;
      let stream: PodStream;
      try {
        stream = await api.attach(pod, {
          container: CONTAINER,
          stdin: true,
          stdout: true,
          signal,
          onStdout: onBytes,
        });
      } catch (error) {
        log.debug({ pod: pod.name, err: error }, 'attach failed');
        leave();
        if (signal.aborted) return;
        this.#failed();
        continue;
      }
      if (signal.aborted) {
        stream.close();
        leave();
        return;
      }
      this.#stream = stream;
      const since = this.silentSince;
      if (this.#silence && since !== undefined) this.#silence = { since, attaches: this.#silence.attaches };
      this.#answered = false;
      const waiting = this.#waiting ?? [];
      this.#waiting = undefined;
      this.#options.onOpen();
      this.write([ASK_READY, ...waiting]);
      this.expectAnswer();
      const openedAt = clock.monotonic();
      const unanswered = () => this.#silence?.attaches ?? 0;
      const before = unanswered();
      const end = await stream.closed;
      this.#stream = undefined;
      leave();
      this.#endPause?.();
      this.#cancelAnswer();
      // A broken connection is not the pod's silence; one that this side closed for lack of an answer is.
      if (end.by !== 'local') this.#silence = undefined;
      else if (this.#silence) this.#silence.closedAt = clock.monotonic();
      // An attach that worked makes a quick attempt worthwhile, and so does one that was closed because no answer came.
      if (unanswered() > before || clock.monotonic() - openedAt > STABLE_MS) this.#schedule.opened();
      log.debug({ pod: pod.name, by: end.by, message: end.message }, 'attach ended');
      if (signal.aborted) return;
      if (!this.#answered) this.#failed();
      onChange();
    }
  }
}
