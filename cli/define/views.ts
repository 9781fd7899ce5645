import { Argument, Option } from 'commander';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { GetFlags } from '../commands/get.ts';
import type { ListFlags } from '../commands/list.ts';
import type { LogsFlags } from '../commands/logs.ts';
import type { SecretFlags } from '../commands/secret.ts';
import type { WaitFlags } from '../commands/wait.ts';
import type { WatchFlags } from '../commands/watch.ts';
import { limit, session, sessionTurnOrStdin } from '../input/flags.ts';
import { waitTarget } from '../wait/target.ts';
import type { AddCommand } from './command.ts';
import { formatOption } from './options.ts';

/** Defines the commands that show sessions and turns, or wait for them. */
export function defineViews(command: AddCommand, cli: Cli): void {
  command(
    'list [sessions|turns]',
    'Lists sessions or turns.',
    ['list', 'list turns --session notes -o wide', 'list -A --watch'],
    async ([what]: ['sessions' | 'turns'], flags: ListFlags) =>
      (await import('../commands/list.ts')).list(what, flags, cli),
  )
    .alias('ls')
    .addArgument(new Argument('[what]', 'sessions or turns').choices(['sessions', 'turns']).default('sessions'))
    .option('-A, --all-namespaces', 'list objects of all namespaces')
    .option('-l, --selector <labels>', 'list only objects with these labels, for example team=red')
    .option('-w, --watch', 'after the list, print every row that changes, until Ctrl-C')
    .option('--session <name>', 'with turns: list only turns of this session', session)
    .option('--parent <session>', 'list only sessions that were made for this one', session)
    .addOption(formatOption('json', 'yaml', 'wide', 'name'));

  command(
    'get [session|turn] NAME',
    'Shows a session with its conditions and turns, or a turn with its output and log.',
    ['get notes', 'get turn notes-9dnwgnrqgfxtt', 'get notes -o yaml'],
    async ([words]: [string[]], flags: GetFlags) => (await import('../commands/get.ts')).get(words, flags, cli),
  )
    .argument('<name...>', 'a session’s name, or a kind and a name')
    .addOption(formatOption('json', 'yaml', 'name'));

  command(
    'logs SESSION|TURN',
    'Prints the agent’s output beside its result: of a turn, or of the newest turn of a session.',
    [
      'logs notes',
      'logs notes-9dnwgnrqgfxtt',
      'logs notes --turn notes-9dnwgnrqgfxtt',
      'logs -f notes',
      'logs - <pod.log',
    ],
    async ([sessionName]: [string], flags: LogsFlags) =>
      (await import('../commands/logs.ts')).logs(sessionName, flags, cli),
  )
    .argument(
      '<session|turn>',
      'the name of a session or of a turn; - reads a pod’s log from stdin and leaves out the frames',
      sessionTurnOrStdin,
    )
    .option('--turn <name>', 'print the log of this turn')
    .option('-f, --follow', 'follow the log until the session (with --turn: the turn) ends');

  command(
    'watch [SESSION]',
    'Prints what happens to a session until it is deleted, or to all sessions and turns of the namespace.',
    ['watch notes --logs', 'watch', 'watch -o json'],
    async ([sessionName]: [string | undefined], flags: WatchFlags) =>
      (await import('../commands/watch.ts')).watch(sessionName, flags, cli),
  )
    .alias('events')
    .argument('[session]', 'the session’s name; default: all sessions and turns of the namespace', session)
    .option('--logs', 'print the lines of the session’s agent, too')
    .addOption(formatOption('json'));

  command(
    'why SESSION',
    'Says what blocks a session, since when, and what happens next.',
    ['why notes'],
    async ([sessionName]: [string], flags: ClusterFlags) =>
      (await import('../commands/why.ts')).why(sessionName, flags, cli),
  ).argument('<session>', 'the session’s name', session);

  command(
    'secret NAME',
    'Says which sessions use a Secret, by their settings or their class, and which have a pod from before its last change.',
    ['secret model', 'secret model -A', 'secret model -o json'],
    async ([name]: [string], flags: SecretFlags) => (await import('../commands/secret.ts')).secret(name, flags, cli),
  )
    .argument('<secret>', 'the Secret’s name')
    .option('-A, --all-namespaces', 'look at sessions of all namespaces, and the Secret of this name in each')
    .addOption(formatOption('json', 'name'));

  command(
    'wait SESSION',
    'Waits until a session, or one of its turns, has reached a state.',
    [
      'wait notes --for=ready',
      'wait notes --for=suspended --timeout 5m',
      'wait notes --for=turn=notes-9dnwgnrqgfxtt --timeout 30m',
    ],
    async ([sessionName]: [string], flags: WaitFlags) =>
      (await import('../commands/wait.ts')).wait(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name', session)
    .requiredOption('--for <state>', 'ready, suspended, finished, or turn=NAME: that turn has succeeded', waitTarget)
    .addOption(
      new Option('--timeout <duration>', 'maximum time to wait, for example 5m; 0: look once')
        .argParser(limit)
        .default(30_000, '30s'),
    )
    .addOption(formatOption('name'));
}
