import { constants } from 'node:os';
import { RemoteCommand, type RemoteCommandOptions } from '../../core/enter/command.ts';
import type { CommandExit } from '../../core/enter/hello.ts';
import type { Cli, Stdin } from '../cli.ts';
import { EXIT, Interrupted } from '../errors.ts';
import type { Entered } from './open.ts';

/** Time that a command has to end whose output nobody can take any more, milliseconds. */
const UNREAD_MS = 5000;

const WHY: Record<NonNullable<CommandExit['reason']>, string> = {
  Timeout: 'it ran longer than its timeout (--timeout) and was ended',
  Signal: 'it was ended by a signal of a client',
  MemoryLimit: 'it was ended at a limit of memory',
  ProcessLimit: 'it was ended at the limit of processes',
  CpuLimit: 'it was ended at the limit of CPU time',
  NoReader: 'it was ended because nobody read its output for a minute',
  PodEnd: 'it was ended with the session’s pod',
};

/**
 * Gives a command the signals of this program and, if wanted, its stdin; prints the output and resolves with the exit code. Ctrl-C goes
 * to the command; a second one ends this program.
 */
export async function followCommand(
  { inside, watch }: Pick<Entered, 'inside' | 'watch'>,
  wanted: Pick<RemoteCommandOptions, 'id' | 'start'> & { stdin: boolean },
  cli: Cli,
): Promise<number> {
  const { clock, random, interrupted } = cli;
  const unread = new AbortController();
  const command = new RemoteCommand({
    id: wanted.id,
    ...(wanted.start && { start: wanted.start }),
    ...(wanted.stdin && { input: inputOf(cli.stdin, interrupted) }),
    open: inside.command,
    watch,
    onOutput: (stream, bytes) => cli.write(stream === 1 ? 'stdout' : 'stderr', bytes),
    onLost: (from, to) => sayLost(to - from, cli),
    clock,
    random,
    signal: unread.signal,
  });
  let cancel = () => {};
  const onInterrupt = () => {
    const { reason } = interrupted;
    if (reason instanceof Interrupted) command.signal(reason.signal);
    else {
      // Locally the command would get SIGPIPE where it writes.
      command.signal('SIGPIPE');
      cancel = clock.setTimer(UNREAD_MS, () => unread.abort(reason));
    }
  };
  if (interrupted.aborted) interrupted.throwIfAborted();
  interrupted.addEventListener('abort', onInterrupt);
  try {
    return endOf(await command.run(), wanted.id, cli);
  } finally {
    cancel();
    interrupted.removeEventListener('abort', onInterrupt);
    if (wanted.stdin) cli.stdin.close();
  }
}

export function sayLost(bytes: number, cli: Cli): void {
  cli.say(`${cli.name}: ${bytes} bytes of its output are kept no more`);
}

/** Says why a command ended, where it did not end by itself, and returns its exit code. */
export function endOf(exit: CommandExit, id: string, cli: Cli): number {
  // The sender of a signal to this program knows why the command ended.
  const isKnown = exit.reason === 'Signal' && cli.interrupted.aborted;
  if (exit.reason && !isKnown) cli.say(`${cli.name}: command ${id}: ${WHY[exit.reason]}`);
  return exitCodeOf(exit);
}

/** Returns the exit code as a shell tells it; that of a command that ended with its pod says nothing. */
function exitCodeOf({ code, signal, reason }: CommandExit): number {
  if (reason === 'PodEnd') return EXIT.lost;
  if (code !== undefined) return code;
  return 128 + (constants.signals[signal as NodeJS.Signals] ?? 0);
}

/** Returns the bytes of stdin. After Ctrl-C, which ends its reading, the command waits for more until it ends. */
async function* inputOf(stdin: Stdin, interrupted: AbortSignal): AsyncIterable<Buffer> {
  try {
    yield* stdin;
  } catch (error) {
    if (!interrupted.aborted) throw error;
    await new Promise(() => {});
  }
}
