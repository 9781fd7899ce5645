import { once } from 'node:events';
import { StringDecoder } from 'node:string_decoder';
import { isatty } from 'node:tty';
import { anySignal } from '../core/abort.ts';
import type { Clock } from '../core/runtime.ts';
import { systemClock, systemRandom } from '../core/system.ts';
import type { Cli, Console, Terminal } from './cli.ts';
import { EXIT, Interrupted, OutputLost } from './errors.ts';
import { processStdin } from './input/stdin.ts';
import { PrintablePieces, printable } from './print/printable.ts';
import { StatusLine } from './print/status-line.ts';

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

/** Size of a terminal that does not know its own, as most programs assume it. */
const USUAL_SIZE = { rows: 24, columns: 80 };

/** The terminal of this process. */
const processConsole: Console = {
  get size() {
    const { rows, columns } = process.stdout;
    return { rows: rows || USUAL_SIZE.rows, columns: columns || USUAL_SIZE.columns };
  },
  async take(heard) {
    const { RawTerminal } = await import('./enter/terminal.ts');
    return new RawTerminal({ stdin: process.stdin, stdout: process.stdout, ...heard });
  },
};

/** Surroundings of a command in this process. */
export function systemCli(): Cli {
  const name = process.env.BERTH_INVOKED_AS || 'berth';
  const interruption = new AbortController();
  let first: NodeJS.Signals | undefined;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const reason = new Interrupted(signal);
      // Kernel and shell both send a signal for a closed terminal.
      if (first === 'SIGHUP' && signal === 'SIGHUP') return;
      if (first) process.exit(reason.exitCode);
      first = signal;
      // This has no effect where stdout was lost before: the first signal then does not cut off a deletion.
      interruption.abort(reason);
    });
  }
  let lost: OutputLost | undefined;
  // The command ends as after Ctrl-C, because it may hold sessions that it has to delete.
  process.stdout.on('error', (error) => {
    lost ??= new OutputLost(error);
    interruption.abort(lost);
  });
  process.stderr.on('error', () => {});
  const messages = () => terminalOf(process.stderr, process.env);
  const terminal = () => terminalOf(process.stdout, process.env);
  const status = new StatusLine(
    (text) => process.stderr.write(text),
    () => messages()?.columns ?? 80,
  );
  // Much of the text comes from agents, so all that goes to a terminal is made safe here.
  const shown = new PrintablePieces();
  const decoder = new StringDecoder('utf8');
  process.on('exit', () => {
    status.clear();
    const rest = shown.end();
    if (rest) process.stdout.write(rest);
    if (!lost || lost.exitCode === EXIT.ok) return;
    // The error may have come after the command's end.
    process.stderr.write(`${name}: ${lost.message}\n`);
    process.exitCode ||= lost.exitCode;
  });
  const write = async (to: 'stdout' | 'stderr', data: string | Uint8Array) => {
    const hasRoom = process[to].write(data);
    // The code above handles the error, also of text whose writing nobody awaits.
    if (!hasRoom) await once(process[to], 'drain').catch(() => {});
  };
  return {
    name,
    env: process.env,
    cwd: process.cwd(),
    stdin: processStdin(interruption.signal),
    async out(data) {
      status.clear();
      if (lost) return;
      const to = terminal();
      const text = () => (typeof data === 'string' ? data : decoder.write(data));
      await write('stdout', to ? shown.add(text(), to.hasColour) : data);
    },
    async write(to, bytes) {
      status.clear();
      if (lost) return;
      await write(to, bytes);
    },
    say(line) {
      status.clear();
      process.stderr.write(`${printable(line, messages()?.hasColour)}\n`);
    },
    status: process.stderr.isTTY && process.env.TERM !== 'dumb' ? (line) => status.show(line) : undefined,
    get terminal() {
      return terminal();
    },
    get messages() {
      return messages();
    },
    // `process.stdin` is opened only by who reads it, which takes a few milliseconds.
    ask:
      isatty(0) && process.stderr.isTTY
        ? async (question, signal = interruption.signal) => {
            const { ask } = await import('./input/ask.ts');
            return status.without(() => ask(question, anySignal(interruption.signal, signal)));
          }
        : undefined,
    console: isatty(0) && process.stdout.isTTY ? processConsole : undefined,
    clock,
    random: systemRandom,
    interrupted: interruption.signal,
  };
}
