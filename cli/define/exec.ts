import { InvalidArgumentError } from 'commander';
import { idProblem } from '../../core/enter/command-start.ts';
import type { Cli } from '../cli.ts';
import type { ExecFlags } from '../commands/exec.ts';
import type { ShellFlags } from '../commands/shell.ts';
import { duration, session, several } from '../input/flags.ts';
import type { AddCommand } from './command.ts';

/** Defines the commands that run commands inside sessions. */
export function defineExec(command: AddCommand, cli: Cli): void {
  command(
    'shell SESSION',
    'Opens a shell inside a running session, on this terminal.',
    ['shell notes', 'shell notes --shell /bin/bash'],
    async ([name]: [string], flags: ShellFlags) => (await import('../commands/shell.ts')).shell(name, flags, cli),
  )
    .argument('<session>', 'the session’s name', session)
    .option('--shell <program>', 'the shell; it must be in the session’s image', filled, '/bin/sh');

  command(
    'exec SESSION -- PROGRAM ARGS…',
    'Runs a command inside a running session, beside its turns, and ends with its exit code.',
    [
      'exec notes -- ls -la',
      'exec -i notes -- tar -x <files.tar',
      'exec -it notes -- python3',
      'exec --detach notes -- python3 -m http.server',
      'exec --attach k3v9x2m4q7wd notes',
      'exec --list notes',
    ],
    async ([name, words]: [string, string[]], flags: ExecFlags) =>
      (await import('../commands/exec.ts')).exec(name, words, flags, cli),
  )
    .argument('<session>', 'the session’s name', session)
    .argument('[program...]', 'the program and its arguments, after --')
    .option('-i, --stdin', 'give the command the stdin of this program; otherwise it has an empty one')
    .option('-t, --tty', 'give the command this terminal, with its keyboard; Enter ~ . leaves it')
    .option('--cwd <folder>', 'the folder in which it runs; default: the agent’s', filled)
    .option('--env <name=value>', 'a variable beside the agent’s; may be given several times', variables)
    .option('--timeout <duration>', 'time after which it is ended, for example 10m; default: 1h', duration)
    .option('--detach', 'print its id and do not wait: it goes on without anybody who reads its output')
    .option('--id <id>', 'its id; a second call with the same id and words attaches to it; default: a random one', id)
    .option(
      '--attach <id>',
      'wait for a command that runs or has just ended: prints its output and ends as it does',
      id,
    )
    .option('--list', 'list the commands that run or have just ended')
    .option('--kill <id>', 'end a command: SIGTERM, and SIGKILL after 5 s', id);
}

function id(text: string): string {
  const problem = idProblem(text);
  if (problem) throw new InvalidArgumentError(`${problem.message}.`);
  return text;
}

function filled(text: string): string {
  if (text === '') throw new InvalidArgumentError('it must be a folder, for example /workspace.');
  return text;
}

/** Collects variables. */
function variables(text: string, before: string[] = []): string[] {
  if (!/^[^=]+=/.test(text)) throw new InvalidArgumentError('it must be a name and a value, for example DEBUG=1.');
  return several(text, before);
}
