import { fstatSync } from 'node:fs';
import type { Cli, Stdin } from '../cli.ts';

/** Time after which a command says that it waits for stdin, milliseconds. */
const SILENT_MS = 2_000;

/** Stdin of this process. It is opened when it is read. Aborting the signal ends the reading with an error. */
export function processStdin(signal: AbortSignal): Stdin {
  return {
    get isPiped() {
      try {
        const facts = fstatSync(0);
        return facts.isFIFO() || facts.isFile();
      } catch {
        return false;
      }
    },
    close: () => void process.stdin.destroy(),
    async *[Symbol.asyncIterator]() {
      const { stdin } = process;
      // Destroying the stream also lets the process end while another one keeps the pipe open.
      const end = () => stdin.destroy(signal.reason as Error);
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
      try {
        yield* stdin;
      } finally {
        signal.removeEventListener('abort', end);
      }
    },
  };
}

/**
 * Reads a stdin that is a pipe or a file to its end; undefined for any other. Says so if that takes long: the other end
 * of the pipe may belong to a process that never closes it.
 */
export async function readPiped<T>(
  { stdin, clock, say }: Pick<Cli, 'stdin' | 'clock' | 'say'>,
  read: (source: AsyncIterable<Buffer>) => Promise<T>,
): Promise<T | undefined> {
  if (!stdin.isPiped) return undefined;
  const cancel = clock.setTimer(SILENT_MS, () =>
    say('waiting for the end of stdin, which is read as the input; for a turn without one add: </dev/null'),
  );
  try {
    return await read(stdin);
  } finally {
    cancel();
  }
}
