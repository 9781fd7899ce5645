import { anySignal, unlessAborted } from '../../core/abort.ts';
import type { Effects } from './context.ts';

/** Poll interval of `unless`. */
const LOOK_MS = 250;

interface BoundedWaitOptions {
  effects: Pick<Effects, 'clock' | 'withoutWorker'>;
  /** Milliseconds since the epoch. */
  deadline: number;
  signal: AbortSignal;
  /** No more waiting as soon as this holds. */
  unless?: () => boolean;
}

/** The time that a store was given is over. */
class StoreSlowError extends Error {
  readonly code = 'StoreSlow';
  constructor() {
    super('The store did not answer within timeouts.persist.');
    this.name = 'StoreSlowError';
  }
}

/** Runs `work` with a signal that aborts at the deadline, with `signal`, or when waiting makes no sense any more. */
export async function boundedWait<T>(
  { effects: { clock, withoutWorker }, deadline, signal, unless }: BoundedWaitOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const bounded = new AbortController();
  let cancel = () => {};
  // Monotonic, as a store answers nothing while the machine sleeps.
  const until = clock.monotonic() + deadline - clock.now();
  const look = () => {
    if (clock.monotonic() >= until || unless?.()) bounded.abort(new StoreSlowError());
    else cancel = clock.setTimer(Math.min(LOOK_MS, Math.max(1, until - clock.monotonic())), look);
  };
  look();
  const both = anySignal(signal, bounded.signal);
  try {
    both.throwIfAborted();
    // A store that ignores the signal must not hold the session for it.
    return await withoutWorker(() => unlessAborted(work(both), both));
  } finally {
    cancel();
    // Node keeps a signal of several that somebody listens to until it is aborted.
    bounded.abort();
  }
}
