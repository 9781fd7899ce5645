import { anySignal } from '../../core/abort.ts';
import { RemoteCommand } from '../../core/enter/command.ts';
import type { CommandListed, CommandStart } from '../../core/enter/hello.ts';
import { randomSuffix } from '../../core/generated-name.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { followCommand } from '../enter/follow-command.ts';
import { followOnTerminal } from '../enter/on-terminal.ts';
import { type Entered, withSession } from '../enter/open.ts';
import { describeError, EXIT, Interrupted, OutputLost, refused } from '../errors.ts';
import { table } from '../print/table.ts';

export interface ExecFlags extends ClusterFlags {
  stdin?: boolean;
  tty?: boolean;
  cwd?: string;
  env?: string[];
  timeout?: string;
  detach?: boolean;
  id?: string;
  attach?: string;
  list?: boolean;
  kill?: string;
}

/** Time from SIGTERM to SIGKILL of a command that is ended, milliseconds. */
const KILL_GRACE_MS = 5000;
const ID_LENGTH = 12;

/** Returns an id for a new command. */
export const newId = (cli: Cli): string => randomSuffix(cli.random, ID_LENGTH);

/**
 * Runs a command inside a session, or attaches to, lists or ends those that run. Resolves with the command's exit code, and with 255
 * where the way to it failed.
 */
export async function exec(name: string, words: string[], flags: ExecFlags, cli: Cli): Promise<number> {
  check(words, flags);
  if (flags.tty && !cli.console) throw refused('-t needs a terminal, and stdin or stdout is none; leave -t out');
  return enter(name, flags, cli, (entered) => run(entered, words, flags, cli));
}

/** Calls `use` with the session's present pod; resolves with 255 where the way into it failed, and says why. */
export async function enter(
  name: string,
  flags: ClusterFlags,
  cli: Cli,
  use: (entered: Entered) => Promise<number>,
): Promise<number> {
  try {
    return await withSession(name, flags, cli, use);
  } catch (error) {
    if (error instanceof Interrupted || error instanceof OutputLost) throw error;
    cli.say(`${cli.name}: ${describeError(error, cli).message}`);
    return EXIT.lost;
  }
}

function run(entered: Entered, words: string[], flags: ExecFlags, cli: Cli): Promise<number> {
  const stdin = flags.stdin === true;
  if (flags.list) return list(entered, cli);
  if (flags.kill !== undefined) return kill(flags.kill, entered);
  if (flags.attach !== undefined) {
    const { attach: id } = flags;
    return flags.tty ? followOnTerminal(entered, { id }, cli) : followCommand(entered, { id, stdin }, cli);
  }
  const id = flags.id ?? newId(cli);
  const start = startOf(words, flags);
  if (flags.tty) return followOnTerminal(entered, { id, start }, cli);
  return flags.detach ? detach(id, start, entered, cli) : followCommand(entered, { id, start, stdin }, cli);
}

/** Refuses flags that say nothing together. */
function check(words: readonly string[], flags: ExecFlags): void {
  const { attach, list: lists, kill: kills, stdin, tty, cwd, env, timeout, detach: detaches, id } = flags;
  const others = Object.entries({ '--attach': attach, '--list': lists, '--kill': kills });
  const [one, two] = others.flatMap(([flag, value]) => (value === undefined ? [] : flag));
  if (one && two) throw refused(`${one} and ${two} say two things; leave one of them out`);
  if (one && words.length > 0) throw refused(`${one} starts nothing; leave out the program`);
  const ofStart = Object.entries({
    '--cwd': cwd,
    '--env': env,
    '--timeout': timeout,
    '--detach': detaches,
    '--id': id,
  });
  const [needless] = ofStart.flatMap(([flag, value]) => (value === undefined ? [] : flag));
  if (one && needless) throw refused(`${needless} is for a command that is started; leave it out with ${one}`);
  if (one && one !== '--attach' && stdin) throw refused(`--stdin is for a command’s input; leave it out with ${one}`);
  if (detaches && tty) throw refused('-t needs somebody who stays at the terminal; leave --detach out');
  if (one && one !== '--attach' && tty) throw refused(`-t is for a command’s terminal; leave it out with ${one}`);
  if (detaches && stdin) throw refused('--stdin needs a reader of stdin that stays; leave --detach out');
  if (!one && words.length === 0) throw refused('there is no program; write it after --, for example: -- ls -la');
}

function startOf(command: string[], { cwd, env, timeout, detach: detaches, stdin }: ExecFlags): CommandStart {
  const variables = env?.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]);
  return {
    command,
    ...(cwd !== undefined && { cwd }),
    ...(variables && { env: Object.fromEntries(variables) }),
    ...(timeout !== undefined && { timeoutSeconds: Math.ceil(parseDuration(timeout) / 1000) }),
    ...(detaches && { detach: true }),
    ...(stdin && { stdin: true }),
  };
}

/** Starts a command and prints its id. A start whose answer was lost is given again, and starts nothing twice. */
async function detach(id: string, start: CommandStart, { inside, watch }: Entered, cli: Cli): Promise<number> {
  const { clock, random, interrupted } = cli;
  const begun = new AbortController();
  const command = new RemoteCommand({
    ...{ id, start, open: inside.command, watch, clock, random },
    onOutput: () => {},
    onLost: () => {},
    onReady: () => begun.abort(),
    signal: anySignal(begun.signal, interrupted),
  });
  await command.run().catch((error) => {
    if (!begun.signal.aborted) throw error;
  });
  await cli.out(`${id}\n`);
  return EXIT.ok;
}

async function kill(id: string, { inside }: Entered): Promise<number> {
  await inside.signalCommand(id, 'SIGTERM', KILL_GRACE_MS);
  return EXIT.ok;
}

async function list({ inside }: Entered, cli: Cli): Promise<number> {
  const shown = (await inside.commands()).map((each) => [
    each.id,
    statusOf(each),
    each.started,
    each.command.join(' '),
  ]);
  await cli.out(table([['ID', 'STATUS', 'STARTED', 'COMMAND'], ...shown], { terminal: cli.terminal }));
  return EXIT.ok;
}

export function statusOf({ exit, detach: detached }: CommandListed): string {
  if (exit) return ended(exit);
  return detached ? 'Running, detached' : 'Running';
}

function ended({ code, signal, reason }: NonNullable<CommandListed['exit']>): string {
  const how = code === undefined ? `Ended by ${signal}` : `Ended with ${code}`;
  return reason ? `${how} (${reason})` : how;
}
