import { closeSync, constants, openSync, readSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Asks on stderr and reads the answer from stdin, which both are terminals. Everything but y and yes is no. */
export function ask(question: string, signal: AbortSignal): Promise<boolean> {
  discardTyped();
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    // Without readline's own terminal mode Ctrl-C stays a signal.
    const lines = createInterface({ input: process.stdin, terminal: false });
    const end = (settle: () => void) => {
      signal.removeEventListener('abort', abort);
      lines.removeAllListeners();
      lines.close();
      process.stdin.unref();
      settle();
    };
    const abort = () => {
      process.stderr.write('\n');
      end(() => reject(signal.reason));
    };
    signal.addEventListener('abort', abort, { once: true });
    lines.once('line', (line) => end(() => resolve(/^\s*y(es)?\s*$/i.test(line))));
    lines.once('close', () => end(() => resolve(false)));
    process.stderr.write(`${question} [y/N] `);
  });
}

/** Drops text that was typed before the question: it was no answer. */
function discardTyped(): void {
  let terminal: number | undefined;
  try {
    // Raw mode also gives the characters of a line that is not ended yet.
    process.stdin.setRawMode(true);
    terminal = openSync('/dev/tty', constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const bytes = Buffer.alloc(1024);
    while (readSync(terminal, bytes) > 0);
  } catch {
    // Nothing more was typed (EAGAIN), or the terminal has no name.
  } finally {
    if (terminal !== undefined) closeSync(terminal);
    process.stdin.setRawMode(false);
  }
}
