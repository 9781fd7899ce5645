/** Time after a question is shown in which keys are no answer to it yet, milliseconds. */
const GUARD_MS = 300;

/** The terminal that a command was called from, if any. */
export interface Terminal {
  /** True if people read stderr. */
  readonly isRead: boolean;
  /** True if people can be asked, too: stdin and stderr are the terminal. */
  readonly canAsk: boolean;
  /** True if colours are wanted on stderr: it is a terminal, and NO_COLOR is not set. */
  readonly hasColours: boolean;
  /**
   * Shows a question on stderr and resolves with the letter of `keys` that is pressed after it, or with `enter` for the
   * Enter key; other keys do nothing. Keys that were typed before are discarded: they were no answer to it. Rejects with the
   * signal's reason. Ctrl-C interrupts the command.
   */
  choose(question: string, keys: string, enter: string, signal: AbortSignal): Promise<string>;
}

/** The terminal of this process. */
export function processTerminal(env: NodeJS.ProcessEnv): Terminal {
  const { stdin, stderr } = process;
  return {
    isRead: stderr.isTTY === true,
    canAsk: stdin.isTTY === true && stderr.isTTY === true,
    hasColours: stderr.isTTY === true && !env.NO_COLOR,
    choose(question, keys, enter, signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const shownAt = performance.now();
        const end = () => {
          stdin.off('data', onData);
          signal.removeEventListener('abort', onAbort);
          stdin.setRawMode(false);
          stdin.pause();
          stderr.write('\n');
        };
        const onAbort = () => {
          end();
          reject(signal.reason);
        };
        const onData = (typed: Buffer) => {
          const text = typed.toString().toLowerCase();
          if (text === '\u0003') process.kill(process.pid, 'SIGINT');
          const chosen = text === '\r' || text === '\n' ? enter : text;
          // Keys with a name, as arrows, come as several letters.
          if (performance.now() - shownAt < GUARD_MS || chosen.length !== 1 || !keys.includes(chosen)) return;
          end();
          resolve(chosen);
        };
        signal.addEventListener('abort', onAbort, { once: true });
        // A key counts at once and without an echo only where lines are not edited first.
        stdin.setRawMode(true);
        stdin.on('data', onData);
        stdin.resume();
        stderr.write(question);
      });
    },
  };
}
