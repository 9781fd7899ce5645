import { RemoteCommand } from '../../core/enter/command.ts';
import type { CommandStart } from '../../core/enter/hello.ts';
import type { Cli } from '../cli.ts';
import { CliError, EXIT, refused } from '../errors.ts';
import { endOf, sayLost } from './follow-command.ts';
import type { Entered } from './open.ts';
import type { RawTerminal } from './terminal.ts';

/** Time that a command has to end once its terminal is gone, milliseconds. */
const HANG_UP_MS = 2000;

/**
 * Gives the caller's terminal to a command, from when it runs to its end, and resolves with its exit code. A signal for this program, as of
 * a terminal that is closed, ends the command; `~.` at the begin of a line only leaves it.
 */
export async function followOnTerminal(
  { session, inside, watch }: Entered,
  { id, start }: { id: string; start?: CommandStart },
  cli: Cli,
): Promise<number> {
  const { clock, random, interrupted, console } = cli;
  if (!console) throw refused('a terminal is needed for -t: stdin or stdout is none; leave -t out');
  interrupted.throwIfAborted();
  /** Aborts when the wait is over, for whatever reason. */
  const over = new AbortController();
  const taken = Promise.withResolvers<RawTerminal>();
  let terminal: RawTerminal | undefined;
  const tellSize = () => command.resize(console.size);
  const take = async () => {
    terminal = await console.take({ onSize: tellSize, onLeave: () => over.abort(left()) });
    if (over.signal.aborted) return terminal.close(true);
    taken.resolve(terminal);
    tellSize();
  };
  const left = () => {
    const how = `${cli.name} exec -it --attach ${id} ${session.metadata.name}`;
    return new CliError('Left', EXIT.lost, `left; the command ends after a minute unless somebody comes: ${how}`);
  };
  const term = cli.env.TERM;
  const command = new RemoteCommand({
    id,
    ...(start && { start: { ...start, stdin: true, tty: { ...console.size, ...(term && { term }) } } }),
    input: keys(taken.promise),
    open: inside.command,
    watch,
    onReady: () => void take().catch((error) => over.abort(error)),
    onOutput: (_, bytes) => cli.write('stdout', bytes),
    onLost: (from, to) => sayLost(to - from, cli),
    clock,
    random,
    signal: over.signal,
  });
  let cancel = () => {};
  const hangUp = () => {
    if (!terminal) over.abort(interrupted.reason);
    command.signal('SIGTERM');
    cancel = clock.setTimer(HANG_UP_MS, () => over.abort(interrupted.reason));
  };
  interrupted.addEventListener('abort', hangUp);
  let isCut = true;
  try {
    const exit = await command.run();
    interrupted.throwIfAborted();
    isCut = exit.code === undefined;
    return endOf(exit, id, cli);
  } finally {
    cancel();
    over.abort(new Error('the command is over'));
    interrupted.removeEventListener('abort', hangUp);
    terminal?.close(isCut);
  }
}

async function* keys(terminal: Promise<RawTerminal>): AsyncIterable<Buffer> {
  yield* await terminal;
}
