import { Option } from 'commander';
import type { Cli } from '../cli.ts';
import type { CreateFlags } from '../commands/create.ts';
import type { DeleteFlags } from '../commands/delete.ts';
import type { MapFlags } from '../commands/map.ts';
import type { RestartFlags } from '../commands/restart.ts';
import type { RunFlags } from '../commands/run.ts';
import type { ResumeFlags, SuspendFlags } from '../commands/suspend.ts';
import type { UpdateFlags } from '../commands/update.ts';
import { duration, type NamedObject, name, parallel, session, severalObjects } from '../input/flags.ts';
import type { AddCommand } from './command.ts';
import {
  agentOptions,
  attemptsOption,
  changeOptions,
  formatOption,
  inputFileOption,
  inputOption,
  manifestOptions,
  quietOption,
  textFileOption,
  textOption,
  yesOption,
} from './options.ts';

/** Defines the commands that create sessions and change them. */
export function defineSessions(command: AddCommand, cli: Cli): void {
  const run = command(
    'run -- PROGRAM ARGS…',
    'Runs one input through a program and prints the output.',
    [
      `run --input '{"n": 3}' --result json -- python3 agent.py`,
      `run --text 'hello' --input-as text --result text -- cat`,
      'run --input-file req.json --timeout 5s -o json -- ./agent.sh',
      'run --rm --memory 2Gi --env-from-secret API_KEY=model/key -- python3 agent.py',
      `run --dry-run=client -o yaml -- python3 agent.py >run.yaml && ${cli.name} run -f run.yaml`,
    ],
    async ([words]: [string[]], flags: RunFlags) => (await import('../commands/run.ts')).run(words, flags, cli),
  )
    .argument('[program...]', 'the program and its arguments, after --')
    .addOption(textOption())
    .addOption(textFileOption())
    .addOption(inputOption())
    .addOption(inputFileOption())
    .option('--name <name>', 'name of the session; default: run- and a random suffix', name)
    .option('--timeout <duration>', 'maximum duration of the turn, for example 90s', duration)
    .addOption(attemptsOption())
    .addOption(quietOption())
    .option('--rm', 'delete the session at the end, also after Ctrl-C and other signals')
    .option('--detach', 'print the names of session and turn and do not wait')
    .addOption(formatOption('json', 'yaml', 'name'));
  manifestOptions(run);
  agentOptions(run);

  const map = command(
    'map FILE -- PROGRAM ARGS…',
    'Runs a program once for each line of a file, and prints the results as JSON lines. The same command goes on where it was stopped.',
    [
      'map --max 4 items.jsonl --result json -- python3 agent.py',
      `map items.jsonl --retry-failed --result json -- python3 agent.py >results.jsonl`,
    ],
    async ([file, words]: [string, string[]], flags: MapFlags) =>
      (await import('../commands/map.ts')).map(file, words, flags, cli),
  )
    .argument('<file>', 'a file with a JSON value on each line; - for stdin')
    .argument('[program...]', 'the program and its arguments, after --')
    .addOption(new Option('--max <number>', 'maximum sessions at the same time').argParser(parallel).default(4))
    .option('--unordered', 'print results as they come instead of in the order of the lines')
    .option('--retry-failed', 'run lines anew whose turn has failed in an earlier call')
    .option(
      '--name <name>',
      'name of the map, which begins the names of its sessions; default: map- and a digest',
      name,
    )
    .option('--timeout <duration>', 'maximum duration of each turn, for example 90s', duration)
    .addOption(attemptsOption());
  agentOptions(map);

  const create = command(
    'create NAME -- PROGRAM ARGS…',
    'Creates a session that takes turns and keeps its state.',
    ['create notes -- python3 notes.py', 'create coder --class coding-agent --idle 15m', 'create -f session.yaml'],
    async ([sessionName, words]: [string | undefined, string[]], flags: CreateFlags) =>
      (await import('../commands/create.ts')).create(sessionName, words, flags, cli),
  )
    .argument('[name]', 'the session’s name; not needed with -f', name)
    .argument('[program...]', 'the program and its arguments, after --')
    .option('--timeout <duration>', 'maximum duration of each turn, for example 90s', duration)
    .addOption(formatOption('json', 'yaml', 'name'));
  manifestOptions(create);
  agentOptions(create);

  const update = command(
    'update SESSION',
    'Changes settings of a session and leaves the others as they are. They count from its next pod on; --restart replaces the present one.',
    [
      'update notes --with . --restart',
      'update notes --requirements requirements.txt --env DEBUG=1',
      'update notes --memory 2Gi --restart --timeout 5m',
    ],
    async ([sessionName]: [string], flags: UpdateFlags) =>
      (await import('../commands/update.ts')).update(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name, before the files of --with', session)
    .showHelpAfterError(`Put the session before the files of --with. See: ${cli.name} update --help`);
  changeOptions(update);
  update
    .option('--restart', 'replace the session’s pod once its running turn has ended, and wait until it is gone')
    .option('--no-wait', 'with --restart: do not wait until the pod is gone')
    .option('--timeout <duration>', 'with --restart: maximum time to wait, for example 5m', duration)
    .addOption(formatOption('json', 'yaml', 'name'));

  command(
    'suspend SESSION',
    'Deletes the session’s pod once its turns have ended and its state is stored. The next turn starts it again.',
    ['suspend notes', 'suspend notes --hold', 'suspend notes --timeout 5m'],
    async ([sessionName]: [string], flags: SuspendFlags) =>
      (await import('../commands/suspend.ts')).suspend(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name', session)
    .option('--hold', 'keep turns queued until: resume')
    .option('--no-wait', 'do not wait until the pod is gone')
    .option(
      '--timeout <duration>',
      'maximum time to wait, for example 5m; the session is still suspended after it',
      duration,
    )
    .addOption(formatOption('name'));

  command(
    'resume SESSION',
    'Removes a hold. The session starts with its next turn.',
    ['resume notes'],
    async ([sessionName]: [string], flags: ResumeFlags) =>
      (await import('../commands/suspend.ts')).resume(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name', session)
    .addOption(formatOption('name'));

  command(
    'restart SESSION|--class NAME|-l LABELS|--outdated|--uses-secret NAME',
    'Replaces pods once their running turns have ended: of a session, whose next turn starts a new pod with the present settings, or of all that flags select.',
    [
      'restart notes --timeout 5m',
      'restart --outdated -A --max 2 --dry-run',
      'restart --class coding-agent --max 8 -o json',
    ],
    async ([sessionName]: [string | undefined], flags: RestartFlags) =>
      (await import('../commands/restart.ts')).restart(sessionName, flags, cli),
  )
    .argument('[session]', 'the session’s name', session)
    .option('--class <name>', 'restart the sessions of this class')
    .option('-l, --selector <labels>', 'restart the sessions with these labels, for example team=red')
    .option(
      '--outdated',
      'restart sessions whose pod would be made otherwise now, or has the runner of another release',
    )
    .option(
      '--uses-secret <name>',
      'restart sessions that use this Secret and whose pod may be from before its last change; see: secret',
    )
    .option('-A, --all-namespaces', 'with a selection: in all namespaces')
    .addOption(
      new Option('--max <number>', 'with a selection: maximum sessions at the same time; default: 4').argParser(
        parallel,
      ),
    )
    .option('--dry-run', 'with a selection: print which sessions would be restarted and why, and restart none')
    .option('--now', 'cancel the running turn instead of waiting for its end')
    .option('--no-wait', 'with a name: do not wait until the pod is gone')
    .option(
      '--timeout <duration>',
      'maximum time to wait for a session, for example 5m; it still restarts after it',
      duration,
    )
    .addOption(formatOption('json', 'name'));

  command(
    'delete [TYPE/]NAME…',
    'Deletes sessions with their turns, pods and stored state; or single turns and Environments, by turn/NAME and environment/NAME.',
    ['delete notes', 'delete notes other --yes', 'delete turn/notes-9dnwgnrqgfxtt environment/tools'],
    async ([objects]: [NamedObject[]], flags: DeleteFlags) =>
      (await import('../commands/delete.ts')).remove(objects, flags, cli),
  )
    .argument('<name...>', 'names of sessions, or a type and a name', severalObjects)
    .addOption(yesOption())
    .addOption(formatOption('name'));
}
