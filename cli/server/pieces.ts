import { Readable } from 'node:stream';
import { anySignal } from '../../core/abort.ts';
import type { Clock } from '../../core/runtime.ts';
import { ServerUnreachable } from './errors.ts';

/** Time without a byte that the server takes, or without its answer to the last, milliseconds. It may wait 60 s for the session. */
const STALL_MS = 90_000;

/**
 * Sends content in pieces, once, as the server takes them; resolves as `send` does, which gets the body and the signal that ends it. Rejects with
 * the content's own error where it has one, and with a ServerUnreachable where the server takes nothing more. `what`: the request, for messages.
 */
export async function sendPieces<T>(
  content: AsyncIterable<Buffer>,
  { what, clock, signal }: { what: string; clock: Clock; signal: AbortSignal },
  send: (body: Readable, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stalled = new AbortController();
  let cancel = () => {};
  const arm = () => {
    cancel();
    const late = new ServerUnreachable(`${what}: nothing was taken for ${STALL_MS / 1000} s`);
    cancel = clock.setTimer(STALL_MS, () => stalled.abort(late));
  };
  let failure: { error: unknown } | undefined;
  const pieces = async function* () {
    try {
      for await (const piece of content) {
        arm();
        yield piece;
      }
      arm();
    } catch (error) {
      failure = { error };
      throw error;
    }
  };
  arm();
  try {
    return await send(Readable.from(pieces(), { objectMode: false }), anySignal(signal, stalled.signal));
  } catch (error) {
    throw failure?.error ?? error;
  } finally {
    cancel();
  }
}
