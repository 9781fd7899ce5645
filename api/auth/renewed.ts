import { unlessAborted } from '../../core/abort.ts';
import type { Clock } from '../../core/runtime.ts';
import { Problem } from '../problems/problems.ts';
import { CONSENT_MS } from './access.ts';

/**
 * Asks again and again, as long as an answer goes on, whether its caller may have it; `ask` rejects as `Access` does.
 * Calls `onRefused` once the caller may not. Returns the function that ends it.
 */
export function renewConsent(clock: Clock, ask: () => Promise<void>, onRefused: () => void): () => void {
  let isOver = false;
  let cancel = () => {};
  const askLater = () => {
    cancel = clock.setTimer(CONSENT_MS, async () => {
      const isRefused = await ask().then(() => false, isRefusal);
      if (isOver) return;
      if (isRefused) onRefused();
      else askLater();
    });
  };
  askLater();
  return () => {
    isOver = true;
    cancel();
  };
}

/** A cluster that cannot be asked has withdrawn nothing. */
function isRefusal(error: unknown): boolean {
  return error instanceof Problem && (error.code === 'Unauthenticated' || error.code === 'Forbidden');
}

/** Yields the content, and fails with the signal's reason as soon as it aborts: also while the source has nothing. */
export async function* failingWhenAborted<T>(content: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const source = content[Symbol.asyncIterator]();
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await unlessAborted(source.next(), signal);
      if (done) return;
      yield value;
    }
  } finally {
    // A source that is still asked for a piece ends after that one only.
    source.return?.().catch(() => undefined);
  }
}

/** Yields the stream up to the piece that comes after the signal has aborted: its source may have more at hand. */
export async function* untilAborted<T>(stream: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  for await (const piece of stream) {
    if (signal.aborted) return;
    yield piece;
  }
}
