import { createHash } from 'node:crypto';
import type { Event, ObjectReference } from '../../core/kube/builtin.ts';
import { isAlreadyExists, isNotFound } from '../../core/kube/errors.ts';
import { events } from '../../core/kube/resources.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import { type Clock, type Logger, pause } from '../../core/runtime.ts';

export interface EventRecorderOptions {
  api: KubeApi;
  clock: Clock;
  log: Logger;
  /** Name of the reporter, as `kubectl describe` shows it. */
  component: string;
}

/** Object of an event. */
export type EventSubject = ObjectReference & { apiVersion: string; kind: string; name: string };

const AGGREGATION_MS = 10 * 60_000;
const MAX_REMEMBERED = 4_096;
const MAX_WAITING = 1_000;
const MAX_MESSAGE = 1_000;
/** Number of events that an object may have at once; one more is allowed each interval. */
const BURST = 25;
const REFILL_MS = 30_000;
const SEND_DEADLINE_MS = 5_000;
/**
 * Time for which events wait before they are written: most are about something that other writes follow, for example the start of a
 * session, and these have the server to themselves. Equal events of that time are written once.
 */
export const PAUSE_MS = 200;

interface Waiting {
  subject: EventSubject;
  type: Event['type'];
  reason: string;
  message: string;
  times: number;
  first: string;
  last: string;
}

/**
 * Writes Kubernetes Events. Recording never waits and never fails: events are notes for people, and they are dropped
 * when there are too many or when the server rejects them. A repetition raises the count of the earlier event.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #written = new Map<string, { count: number; at: number }>();
  readonly #budgets = new Map<string, { left: number; at: number }>();
  readonly #abort = new AbortController();
  /** Aborts when the recorder is stopped: nothing waits any more. */
  readonly #stopping = new AbortController();
  #sending: Promise<void> | undefined;
  #dropped = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Number of events that were not written, for any reason. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Records an event about `subject`. `reason` is one CamelCase word. */
  record(subject: EventSubject, type: Event['type'], reason: string, message: string): void {
    const text = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message;
    const key = JSON.stringify([subject.kind, subject.namespace, subject.name, subject.uid, type, reason, text]);
    const at = new Date(this.#options.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) {
      waiting.times++;
      waiting.last = at;
      return;
    }
    if (this.#abort.signal.aborted || this.#waiting.size >= MAX_WAITING || !this.#withinBudget(subject)) {
      this.#dropped++;
      return;
    }
    this.#waiting.set(key, { subject, type, reason, message: text, times: 1, first: at, last: at });
    this.#sending ??= this.#send();
  }

  /** Waits until everything is written, at most `deadlineMs`; then the rest is dropped. */
  async stop(deadlineMs: number): Promise<void> {
    this.#stopping.abort();
    const cancel = this.#options.clock.setTimer(deadlineMs, () =>
      this.#abort.abort(new Error('the recorder was stopped')),
    );
    await this.#sending;
    cancel();
    this.#abort.abort(new Error('the recorder was stopped'));
  }

  async #send(): Promise<void> {
    while (this.#waiting.size > 0) {
      await pause(this.#options.clock, PAUSE_MS, this.#stopping.signal);
      for (const [key, event] of [...this.#waiting]) {
        this.#waiting.delete(key);
        try {
          this.#abort.signal.throwIfAborted();
          await this.#write(key, event);
        } catch (error) {
          this.#dropped += event.times;
          const { kind, namespace, name } = event.subject;
          const facts = { kind, namespace, name, reason: event.reason, err: (error as Error).message };
          this.#options.log.debug(facts, 'event could not be written');
        }
      }
    }
    this.#sending = undefined;
  }

  async #write(key: string, event: Waiting): Promise<void> {
    const { api, clock } = this.#options;
    const call = { deadlineMs: SEND_DEADLINE_MS, signal: this.#abort.signal };
    // Events of cluster-scoped objects are in `default`, where kubectl looks.
    const ref = { namespace: event.subject.namespace ?? 'default', name: eventName(key, event.subject.name) };
    const bump = async (before: number) => {
      const patch = { count: before + event.times, lastTimestamp: event.last };
      const { count } = await api.patch(events, ref, patch, call);
      remember(this.#written, key, { count, at: clock.monotonic() }, MAX_REMEMBERED);
    };

    const written = this.#written.get(key);
    if (written !== undefined && clock.monotonic() - written.at < AGGREGATION_MS) {
      try {
        return await bump(written.count);
      } catch (error) {
        // The server keeps events for an hour by default.
        if (!isNotFound(error)) throw error;
      }
    }
    try {
      const { count } = await api.create(events, this.#body(ref, event), call);
      remember(this.#written, key, { count, at: clock.monotonic() }, MAX_REMEMBERED);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      // The event was written by an earlier process, or was dropped from memory since.
      await bump((await api.get(events, ref, call)).count ?? 1);
    }
  }

  #body(ref: { namespace: string; name: string }, event: Waiting): Event {
    return {
      metadata: ref,
      involvedObject: event.subject,
      type: event.type,
      reason: event.reason,
      message: event.message,
      count: event.times,
      firstTimestamp: event.first,
      lastTimestamp: event.last,
      source: { component: this.#options.component },
      reportingComponent: this.#options.component,
    };
  }

  #withinBudget(subject: EventSubject): boolean {
    const key = JSON.stringify([subject.kind, subject.namespace, subject.name, subject.uid]);
    const now = this.#options.clock.monotonic();
    const budget = this.#budgets.get(key) ?? { left: BURST, at: now };
    const left = Math.min(BURST, budget.left + (now - budget.at) / REFILL_MS);
    const allowed = left >= 1;
    remember(this.#budgets, key, { left: allowed ? left - 1 : left, at: now }, MAX_REMEMBERED);
    return allowed;
  }
}

/** Returns one name for the same event of the same object, whichever process writes it. */
function eventName(key: string, name: string): string {
  const digest = createHash('sha256').update(key).digest('hex').slice(0, 16);
  return `${name.slice(0, 230).replace(/[-.]+$/, '')}.${digest}`;
}

/** Sets an entry as the youngest and drops the oldest beyond `max`. */
function remember<V>(map: Map<string, V>, key: string, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > max) map.delete(map.keys().next().value as string);
}
