/** Transfers of files over connections that may be lost. */
import { onAbort } from '../../core/abort.ts';
import { EnterError } from '../../core/enter/client.ts';
import { endedBy } from '../../core/enter/files.ts';
import type { FileEnd, FileEntry } from '../../core/enter/hello.ts';
import { Reconnects } from '../../core/enter/reconnects.ts';
import { mayPass } from '../../core/kube/retry.ts';
import type { Cli } from '../cli.ts';
import type { Place } from '../cluster/inside.ts';
import type { Entered } from './open.ts';

/** Attempts of a transfer that begins anew each time. */
const ATTEMPTS = 5;

type Surroundings = Pick<Cli, 'clock' | 'random' | 'interrupted'>;

/** Attempts after a loss, until the session has its pod no more. Disposing of it ends the watch over that. */
class Mending implements Disposable {
  readonly reconnects: Reconnects;
  readonly #over = new AbortController();
  readonly #watch: Entered['watch'];
  readonly #forget: () => void;
  #isWatched = false;

  constructor(watch: Entered['watch'], { clock, random, interrupted }: Surroundings) {
    this.#watch = watch;
    this.#forget = onAbort(interrupted, () => this.#over.abort(interrupted.reason));
    this.reconnects = new Reconnects({ clock, random, signal: this.#over.signal });
  }

  /** Resolves when it is time for another attempt; rejects where there is none after this error. */
  async again(error: unknown): Promise<void> {
    const { signal } = this.#over;
    signal.throwIfAborted();
    // A suspension may be undone; what becomes of it, the watch tells.
    const mayPassBy =
      error instanceof EnterError
        ? this.#isWatched && (error.code === 'Suspended' || error.code === 'NotReady')
        : mayPass(error, true);
    if (!mayPassBy) throw error;
    if (!this.#isWatched) this.#watch(signal).catch((reason) => this.#over.abort(reason));
    this.#isWatched = true;
    await this.reconnects.next(error);
  }

  [Symbol.dispose](): void {
    this.#forget();
    this.#over.abort(new Error('the transfer is over'));
  }
}

/**
 * Resolves with what an attempt resolves with; one whose connection is lost is begun anew, some times. An attempt calls `begun` once its
 * connection is open. It leaves nothing behind where it fails.
 */
export async function begunAnew<R>(
  { watch }: Pick<Entered, 'watch'>,
  cli: Surroundings,
  attempt: (begun: () => void) => Promise<R>,
): Promise<R> {
  using mending = new Mending(watch, cli);
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(() => mending.reconnects.opened());
    } catch (error) {
      if (tries === ATTEMPTS) throw error;
      await mending.again(error);
    }
  }
}

/**
 * Reads a file; after a loss of the connection it goes on where that was cut, as long as the file is the same, otherwise it throws a
 * FileReplacedError. Resolves once the first bytes can come.
 */
export async function readMended(
  entered: Pick<Entered, 'inside' | 'watch'>,
  place: Place,
  cli: Surroundings,
): Promise<{ entry: FileEntry; data: AsyncGenerator<Buffer, Pick<FileEnd, 'changed'>> }> {
  const { entry, data } = await begunAnew(entered, cli, () => entered.inside.read(place));
  const whole = goingOn(data, entered, { place, entry, cli });
  return { entry, data: endedBy(whole, () => void data.return(undefined as never)) };
}

async function* goingOn(
  first: AsyncGenerator<Buffer, FileEnd>,
  { inside, watch }: Pick<Entered, 'inside' | 'watch'>,
  { place, entry, cli }: { place: Place; entry: FileEntry; cli: Surroundings },
): AsyncGenerator<Buffer, Pick<FileEnd, 'changed'>> {
  using mending = new Mending(watch, cli);
  let data: AsyncGenerator<Buffer, FileEnd> | undefined = first;
  let offset = 0;
  try {
    for (;;) {
      let piece: IteratorResult<Buffer, FileEnd>;
      try {
        data ??= (await inside.read(place, { of: entry, offset })).data;
        piece = await data.next();
      } catch (error) {
        data = undefined;
        await mending.again(error);
        continue;
      }
      if (piece.done) return piece.value;
      mending.reconnects.opened();
      offset += piece.value.length;
      yield piece.value;
    }
  } finally {
    await data?.return(undefined as never);
  }
}
