import { once } from 'node:events';
import { isatty } from 'node:tty';
import type { Clock } from '../core/runtime.ts';
import { systemClock, systemRandom } from '../core/system.ts';
import type { Cli, Terminal } from './cli.ts';
import { Interrupted } from './errors.ts';
import { processStdin } from './stdin.ts';

/** Clock whose timers keep the process alive, because a command that waits must not end. */
const clock: Clock = {
  ...systemClock,
  setTimer(ms, fn) {
    const timer = setTimeout(fn, ms);
    return () => clearTimeout(timer);
  },
};

/** Returns the terminal of a stream. */
function terminalOf(
  { isTTY, columns }: { isTTY?: boolean; columns?: number },
  { NO_COLOR, TERM }: NodeJS.ProcessEnv,
): Terminal | undefined {
  // A terminal that does not know its width reports 0.
  return isTTY ? { columns: columns || 80, hasColour: !NO_COLOR && TERM !== 'dumb' } : undefined;
}

/** Surroundings of a command in this process. */
export function systemCli(): Cli {
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const reason = new Interrupted(signal);
      if (interruption.signal.aborted) process.exit(reason.exitCode);
      interruption.abort(reason);
    });
  }
  // A closed stdout is no error: in `berth list | head` the reader has enough.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  process.stderr.on('error', () => {});
  return {
    name: process.env.BERTH_INVOKED_AS || 'berth',
    env: process.env,
    cwd: process.cwd(),
    stdin: processStdin(interruption.signal),
    async out(text) {
      if (!process.stdout.write(text)) await once(process.stdout, 'drain');
    },
    say(line) {
      process.stderr.write(`${line}\n`);
    },
    status: process.stderr.isTTY ? (line) => process.stderr.write(`\r\x1b[K${line}`) : undefined,
    get terminal() {
      return terminalOf(process.stdout, process.env);
    },
    get messages() {
      return terminalOf(process.stderr, process.env);
    },
    // `process.stdin` is opened only by who reads it, which takes a few milliseconds.
    ask:
      isatty(0) && process.stderr.isTTY
        ? async (question, signal = interruption.signal) => {
            const { ask } = await import('./ask.ts');
            return ask(question, AbortSignal.any([interruption.signal, signal]));
          }
        : undefined,
    clock,
    random: systemRandom,
    interrupted: interruption.signal,
  };
}
