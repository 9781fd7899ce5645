import type { Clock } from '../../core/runtime.ts';

/** Times of attempts to attach, from measurements on kind: see `docs/decisions/attach.md`. */
const FIRST_MS = 120;
const FAST_MS = 25;
/** Interval for a pod while nobody waits: each attempt costs the API server and the kubelet a connection. */
const UNHURRIED_MS = 200;
const FAST_FOR_MS = 1000;
const SLOW_MS = 2000;
const SLOWEST_MS = 15_000;

/**
 * Paces the attempts to attach to one pod. From 120 ms after it was scheduled they come every 25 ms for a second, since the
 * process answers long before the kubelet reports it. Then they come at least every 2 s, backing off to 15 s, and whenever
 * the pod changes. Pods of pools are tried less often in that second, because nobody waits.
 */
export class AttachSchedule {
  readonly #clock: Clock;
  #fastMs: number;
  #scheduledAt: number | undefined;
  /** True once the pod is being deleted: an attach that ends then seldom comes back. */
  #isEnding = false;
  #slowMs = SLOW_MS;
  #changed = false;
  #wake: (() => void) | undefined;
  /** Ends the wait between two fast attempts. */
  #cut: (() => void) | undefined;

  constructor(clock: Clock, { hurried }: { hurried: boolean }) {
    this.#clock = clock;
    this.#fastMs = hurried ? FAST_MS : UNHURRIED_MS;
  }

  /** The pod’s container starts about now; only the first call counts. */
  scheduled(): void {
    this.#scheduledAt ??= this.#clock.monotonic();
    this.changed();
  }

  /** Notes a change of the pod: worth an attempt, unless attempts are fast anyway. */
  changed(): void {
    this.#changed = true;
    this.#wake?.();
  }

  /** Notes that somebody waits for the pod from now on. */
  hurry(): void {
    if (this.#fastMs === FAST_MS) return;
    this.#fastMs = FAST_MS;
    this.#cut?.();
  }

  /** The pod is being deleted. */
  ends(): void {
    this.#isEnding = true;
  }

  /** Moves the fast attempts by the milliseconds in which none could be made. */
  delayed(ms: number): void {
    if (this.#scheduledAt !== undefined) this.#scheduledAt += ms;
  }

  /** Starts the fast attempts over after an attach that was open. */
  opened(): void {
    this.#scheduledAt = this.#clock.monotonic() - FIRST_MS;
    this.#slowMs = SLOW_MS;
  }

  /** Resolves when the next attempt is due; at once when the signal aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#scheduledAt === undefined) {
        await this.#sleep(SLOW_MS, signal);
        if (this.#scheduledAt === undefined) return; // no node known yet: the cache may be late, so try
        continue;
      }
      const since = this.#clock.monotonic() - this.#scheduledAt;
      if (since < FIRST_MS) {
        await this.#sleep(FIRST_MS - since, signal, 'Never');
        return;
      }
      if (since < FIRST_MS + FAST_FOR_MS && !this.#isEnding) {
        await this.#sleep(this.#fastMs, signal, 'Hurried');
        return;
      }
      await this.#sleep(this.#slowMs, signal);
      this.#slowMs = Math.min(this.#slowMs * 2, SLOWEST_MS);
      return;
    }
  }

  /** Waits so long, or until the pod has changed or is waited for. */
  #sleep(ms: number, signal: AbortSignal, endsEarly: 'Changed' | 'Hurried' | 'Never' = 'Changed'): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        signal.removeEventListener('abort', done);
        this.#wake = undefined;
        this.#cut = undefined;
        resolve();
      };
      const cancel = this.#clock.setTimer(ms, done);
      signal.addEventListener('abort', done);
      if (endsEarly === 'Hurried') this.#cut = done;
      if (endsEarly !== 'Changed') return;
      this.#wake = () => {
        this.#changed = false;
        done();
      };
      if (this.#changed) this.#wake();
    });
  }
}
