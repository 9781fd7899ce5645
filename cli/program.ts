import { Argument, Command, CommanderError, Option } from 'commander';
import { VERSION } from '../core/program/version.ts';
import type { Cli, ClusterFlags } from './cli.ts';
import type { ApproveFlags } from './commands/approve.ts';
import type { CancelFlags } from './commands/cancel.ts';
import type { CreateFlags } from './commands/create.ts';
import type { GetFlags } from './commands/get.ts';
import type { ListFlags } from './commands/list.ts';
import type { LogsFlags } from './commands/logs.ts';
import type { RestartFlags } from './commands/restart.ts';
import type { RunFlags } from './commands/run.ts';
import type { SuspendFlags } from './commands/suspend.ts';
import type { TurnFlags } from './commands/turn.ts';
import { describeError, EXIT, Interrupted } from './errors.ts';
import { attempts, duration, name, nameOrStdin, port, several } from './flags.ts';
import { systemCli } from './system.ts';

/**
 * Defines every command and flag. A command's module is imported when the command is called, so that `--help` is fast.
 * Resolves with the exit code.
 */
export async function main(args: string[]): Promise<number> {
  const cli = systemCli();
  let exitCode: number = EXIT.ok;
  const program = define(cli, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.refused;
    const told = describeError(error, cli);
    // The message is not needed after the user's own Ctrl-C.
    if (!(error instanceof Interrupted)) cli.say(`${cli.name}: ${told.message}`);
    return told.exitCode;
  }
}

function define(cli: Cli, done: (exitCode: number) => void): Command {
  const program = new Command(cli.name)
    .description('Runs agent sessions on Kubernetes.')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .helpCommand(false)
    .version(VERSION, '--version', 'print the version')
    .option('-n, --namespace <namespace>', 'the namespace; default: the kubeconfig’s', name)
    .option(
      '--kubeconfig <file>',
      'the kubeconfig; default: $KUBECONFIG, the running embedded cluster’s, ~/.kube/config',
    )
    .option('--context <name>', 'the context of the kubeconfig');

  /** Adds a command; `action` gets its arguments and all flags. */
  const command = <Words extends unknown[], Flags>(
    usage: string,
    description: string,
    examples: string[],
    action: (words: Words, flags: Flags) => Promise<number>,
  ): Command => {
    const [word = '', ...rest] = usage.split(' ');
    const added = program
      .command(word)
      .usage(['[flags]', ...rest].join(' '))
      .description(description)
      .addHelpText('after', `\nExample:\n${examples.map((example) => `  ${cli.name} ${example}`).join('\n')}`)
      .showHelpAfterError(
        `${usage.includes('--') ? 'Put the program and its arguments after --. ' : ''}See: ${cli.name} ${word} --help`,
      )
      .action(async (...parameters) => {
        const self = parameters.at(-1) as Command;
        done(await action(self.processedArgs as Words, self.optsWithGlobals() as Flags));
      });
    return added;
  };

  program.addHelpText(
    'after',
    `\nExample:\n  ${cli.name} local up --detach\n  ${cli.name} run --input '{"n": 3}' --result json -- python3 agent.py`,
  );
  program.showHelpAfterError(`See: ${cli.name} --help`);

  const run = command(
    'run -- PROGRAM ARGS…',
    'Runs one input through a program and prints the output.',
    [
      `run --input '{"n": 3}' --result json -- python3 agent.py`,
      `run --text 'hello' --input-as text --result text -- cat`,
      'run --input-file req.json --timeout 5s -o json -- ./agent.sh',
    ],
    async ([words]: [string[]], flags: RunFlags) => (await import('./commands/run.ts')).run(words, flags, cli),
  )
    .argument('[program...]', 'the program and its arguments, after --')
    .addOption(textOption())
    .addOption(textFileOption())
    .addOption(inputOption())
    .addOption(inputFileOption())
    .option('--name <name>', 'name of the session; default: run- and a random suffix', name)
    .option('--timeout <duration>', 'maximum duration of the turn, for example 90s', duration)
    .addOption(attemptsOption())
    .addOption(formatOption('json', 'yaml'));
  agentOptions(run);

  const create = command(
    'create NAME -- PROGRAM ARGS…',
    'Creates a session that takes turns and keeps its state.',
    ['create notes -- python3 notes.py', 'create coder --class coding-agent'],
    async ([sessionName, words]: [string, string[]], flags: CreateFlags) =>
      (await import('./commands/create.ts')).create(sessionName, words, flags, cli),
  )
    .argument('<name>', 'the session’s name', name)
    .argument('[program...]', 'the program and its arguments, after --')
    .option('--timeout <duration>', 'maximum duration of each turn, for example 90s', duration)
    .addOption(formatOption('json', 'yaml', 'name'));
  agentOptions(create);

  command(
    'turn SESSION',
    'Gives a session a turn, waits for it and prints the output.',
    ['turn notes --text hello', `turn notes --input '{"n": 3}'`, 'turn notes < question.json'],
    async ([sessionName]: [string], flags: TurnFlags) =>
      (await import('./commands/turn.ts')).turn(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name', name)
    .showHelpAfterError(`Give the input with --text, --input or through a pipe. See: ${cli.name} turn --help`)
    .addOption(textOption())
    .addOption(textFileOption())
    .addOption(inputOption())
    .addOption(inputFileOption())
    .option('--name <name>', 'name of the turn; default: the session’s name and a random suffix', name)
    .option('--timeout <duration>', 'maximum duration of the turn, for example 90s', duration)
    .addOption(attemptsOption())
    .option('--no-wait', 'print the turn’s name and do not wait for its end')
    .addOption(formatOption('json', 'yaml'));

  command(
    'list [sessions|turns]',
    'Lists sessions or turns.',
    ['list', 'list turns --session notes -o wide', 'list -A'],
    async ([what]: ['sessions' | 'turns'], flags: ListFlags) =>
      (await import('./commands/list.ts')).list(what, flags, cli),
  )
    .addArgument(new Argument('[what]', 'sessions or turns').choices(['sessions', 'turns']).default('sessions'))
    .option('-A, --all-namespaces', 'list objects of all namespaces')
    .option('-l, --selector <labels>', 'list only objects with these labels, for example team=red')
    .option('--session <name>', 'with turns: list only turns of this session', name)
    .option('--parent <session>', 'list only sessions that were made for this one', name)
    .addOption(formatOption('json', 'yaml', 'wide', 'name'));

  command(
    'get [session|turn] NAME',
    'Shows a session with its conditions and turns, or a turn with its output and log.',
    ['get notes', 'get turn notes-x7k2p', 'get notes -o yaml'],
    async ([words]: [string[]], flags: GetFlags) => (await import('./commands/get.ts')).get(words, flags, cli),
  )
    .argument('<name...>', 'a session’s name, or a kind and a name')
    .addOption(formatOption('json', 'yaml', 'name'));

  command(
    'logs SESSION',
    'Prints the agent’s output beside its result, of the newest turn.',
    ['logs notes', 'logs notes --turn notes-x7k2p', 'logs -f notes', 'logs - <pod.log'],
    async ([sessionName]: [string], flags: LogsFlags) =>
      (await import('./commands/logs.ts')).logs(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name; - reads a pod’s log from stdin and leaves out the frames', nameOrStdin)
    .option('--turn <name>', 'print the log of this turn')
    .option('-f, --follow', 'follow the log until the session (with --turn: the turn) ends');

  command(
    'suspend SESSION',
    'Deletes the session’s pod once its turns have ended and its state is stored. The next turn starts it again.',
    ['suspend notes', 'suspend notes --hold'],
    async ([sessionName]: [string], flags: SuspendFlags) =>
      (await import('./commands/suspend.ts')).suspend(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name', name)
    .option('--hold', 'keep turns queued until: resume')
    .option('--no-wait', 'do not wait until the pod is gone');

  command(
    'resume SESSION',
    'Removes a hold. The session starts with its next turn.',
    ['resume notes'],
    async ([sessionName]: [string], flags: ClusterFlags) =>
      (await import('./commands/resume.ts')).resume(sessionName, flags, cli),
  ).argument('<session>', 'the session’s name', name);

  command(
    'restart SESSION',
    'Replaces the session’s pod once its running turn has ended; the next turn starts a new one with the present settings.',
    ['restart notes', 'restart notes --timeout 5m'],
    async ([sessionName]: [string], flags: RestartFlags) =>
      (await import('./commands/restart.ts')).restart(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name', name)
    .option('--no-wait', 'do not wait until the pod is gone')
    .option(
      '--timeout <duration>',
      'maximum time to wait, for example 5m; the session still restarts after it',
      duration,
    );

  command(
    'cancel SESSION',
    'Cancels the session’s running and queued turns.',
    ['cancel notes', 'cancel notes --turn notes-x7k2p'],
    async ([sessionName]: [string], flags: CancelFlags) =>
      (await import('./commands/cancel.ts')).cancel(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name', name)
    .option('--turn <name>', 'cancel only this turn')
    .option('--no-wait', 'do not wait for the end of the turns');

  command(
    'approve SESSION|TURN',
    'Decides on the request of a turn; the first decision counts.',
    [
      'approve notes',
      `approve notes --deny --note 'not on a Friday'`,
      `approve notes-x7k2p --response '{"budget": 5}'`,
    ],
    async ([what]: [string], flags: ApproveFlags) => (await import('./commands/approve.ts')).approve(what, flags, cli),
  )
    .argument('<session|turn>', 'the session of the waiting turn, or the turn')
    .option('--deny', 'deny the request')
    .option('--response <json>', 'further data for the agent, as JSON')
    .option('--note <text>', 'reason for the decision, in words')
    .option('--request <id>', 'decide only if the turn waits for the request with this id');

  command(
    'delete SESSION…',
    'Deletes sessions with their turns, pods and stored state.',
    ['delete notes'],
    async ([names]: [string[]], flags: ClusterFlags) =>
      (await import('./commands/delete.ts')).remove(names, flags, cli),
  ).argument('<session...>', 'names of the sessions', (text: string, before: string[] = []) => [...before, name(text)]);

  defineEnv(program, cli, done);
  defineLocal(program, cli, done);
  return program;
}

/** Defines `env`, the commands on Environments. */
function defineEnv(program: Command, cli: Cli, done: (exitCode: number) => void): void {
  const env = program
    .command('env')
    .usage('create|get|check|list|delete')
    .helpCommand(false)
    .showHelpAfterError(`See: ${cli.name} env --help`)
    .description('Python packages for sessions, built once when a session needs them.')
    .addHelpText(
      'after',
      `\nExample:\n  ${cli.name} env create tools -r requirements.txt\n  ${cli.name} env get tools`,
    );
  const add = (word: string, usage: string, description: string, example: string) =>
    env
      .command(word)
      .usage(`[flags] ${usage}`)
      .description(description)
      .addHelpText('after', `\nExample:\n  ${cli.name} ${example}`)
      .showHelpAfterError(`See: ${cli.name} env ${word} --help`);
  const names = (text: string, before: string[] = []) => [...before, name(text)];

  add('create', 'NAME REQUIREMENT…', 'Creates an Environment.', `env create tools 'httpx >=0.28' --python 3.12`)
    .argument('<name>', 'name of the Environment', name)
    .argument('[requirement...]', 'packages, such as httpx==0.28.1')
    .option('-r, --requirements <file>', 'a requirements file, uv.lock or pyproject.toml; - for stdin')
    .option('--python <version>', 'required version of the image’s Python, for example 3.12')
    .option('--class <name>', 'SessionClass of the sessions that use it', 'python')
    .option('--image <image>', 'another image than the class’s')
    .addOption(formatOption('json', 'yaml', 'name'))
    .action(async (environment: string, words: string[], _flags, self: Command) =>
      done(
        await (await import('./commands/env.ts')).createEnvironment(environment, words, self.optsWithGlobals(), cli),
      ),
    );
  add('get', 'NAME', 'Shows an Environment with its packages.', 'env get tools')
    .argument('<name>', 'name of the Environment', name)
    .addOption(formatOption('json', 'yaml', 'name'))
    .action(async (environment: string, _flags, self: Command) =>
      done(await (await import('./commands/env.ts')).showEnvironment(environment, self.optsWithGlobals(), cli)),
    );
  add(
    'check',
    'NAME',
    'Builds an Environment if necessary, starts its Python and compares the installed packages.',
    'env check tools',
  )
    .argument('<name>', 'name of the Environment', name)
    .action(async (environment: string, _flags, self: Command) =>
      done(await (await import('./commands/env-check.ts')).checkEnvironment(environment, self.optsWithGlobals(), cli)),
    );
  add('list', '', 'Lists Environments.', 'env list')
    .option('-A, --all-namespaces', 'list objects of all namespaces')
    .addOption(formatOption('json', 'yaml', 'wide', 'name'))
    .action(async (_flags, self: Command) =>
      done(await (await import('./commands/list.ts')).list('environments', self.optsWithGlobals(), cli)),
    );
  add('delete', 'NAME…', 'Deletes Environments. Sessions that have one keep it.', 'env delete tools')
    .argument('<name...>', 'names of the Environments', names)
    .action(async (all: string[], _flags, self: Command) =>
      done(await (await import('./commands/env.ts')).deleteEnvironments(all, self.optsWithGlobals(), cli)),
    );
}

/** Defines `local`, which passes its flags on to the embedded cluster, a program of its own. */
function defineLocal(program: Command, cli: Cli, done: (exitCode: number) => void): void {
  const local = program
    .command('local')
    .usage('up|down|kubeconfig')
    .helpCommand(false)
    .showHelpAfterError(`See: ${cli.name} local --help`)
    .description('The embedded cluster: Kubernetes’ API, Berth and its pods as processes of this machine.')
    .addHelpText(
      'after',
      `\nExample:\n  ${cli.name} local up --detach\n  kubectl --kubeconfig "$(${cli.name} local kubeconfig)" get sessions,turns`,
    );
  const add = (
    word: string,
    description: string,
    example: string,
    run: (flags: Record<string, unknown>) => Promise<number>,
  ) =>
    local
      .command(word)
      .description(description)
      .addHelpText('after', `\nExample:\n  ${example}`)
      .showHelpAfterError(`See: ${cli.name} local ${word} --help`)
      .action(async (flags) => done(await run(flags)));
  const start = async (args: string[]) => (await import('./commands/local.ts')).local(args, cli);

  add(
    'up',
    'Starts the embedded cluster; stays in the foreground unless --detach.',
    `${cli.name} local up --detach`,
    (flags) =>
      start([
        'up',
        ...(flags.detach ? ['--detach'] : []),
        ...(flags.port ? ['--port', String(flags.port)] : []),
        ...(flags.apiPort ? ['--api-port', String(flags.apiPort)] : []),
      ]),
  )
    .option('--detach', 'return when the cluster is ready, and print the path of its kubeconfig')
    .option('--port <port>', 'port of the Kubernetes API on 127.0.0.1; default: a free port', port)
    .option('--api-port <port>', 'port of the HTTP API on 127.0.0.1; default: a free port', port);
  add(
    'down',
    'Stops the embedded cluster with all its pods; sessions and their state are kept.',
    `${cli.name} local down`,
    () => start(['down']),
  );
  add(
    'kubeconfig',
    'Prints the path of the cluster’s kubeconfig.',
    `kubectl --kubeconfig "$(${cli.name} local kubeconfig)" get sessions`,
    async () => (await import('./commands/local.ts')).localKubeconfig(cli),
  );
}

const textOption = () => new Option('--text <text>', 'the input as a string, unchanged');
const textFileOption = () => new Option('--text-file <file>', 'a file whose text is the input, unchanged; - for stdin');
const inputOption = () => new Option('--input <json>', 'the input as JSON');
const inputFileOption = () =>
  new Option(
    '--input-file <file>',
    'a file with the input as JSON; - for stdin. Default: a stdin that is a pipe or a file',
  );

const attemptsOption = () =>
  new Option(
    '--attempts <number>',
    'maximum attempts if the turn’s pod is lost; only for turns that may run twice',
  ).argParser(attempts);

const formatOption = (...formats: string[]) => new Option('-o, --output <format>', 'output format').choices(formats);

/** Adds the options of the agent. */
function agentOptions(command: Command): void {
  command
    .option('--class <name>', 'the SessionClass', 'default')
    .addOption(
      new Option(
        '--result <kind>',
        'format of the result: an envelope between markers, or all of stdout; default: the class’s, or envelope',
      ).choices(['envelope', 'json', 'text']),
    )
    .addOption(
      new Option(
        '--input-as <kind>',
        'way in which the program gets the input; default: the class’s, or stdin',
      ).choices(['stdin', 'text', 'file', 'args']),
    )
    .option(
      '--env <name[=value]>',
      'a variable for the program; NAME alone takes your own value; may be repeated',
      several,
    )
    .option(
      '--with <path...>',
      'files and folders of the program, packed into a ConfigMap; they become its working directory',
    )
    .option('--with-all', 'with --with: also .git, .venv, .env… and files that .gitignore and .berthignore name')
    .option(
      '--workdir <dir>',
      'working directory of the program; default: the files of --with; on the embedded cluster otherwise yours',
    )
    .option('--environment <name>', 'an Environment with Python packages', name)
    .option(
      '--requirements <file>',
      'Python packages in a requirements file; creates an Environment for them, or uses an existing one',
    )
    .option('--python <version>', 'with --requirements: required version of the image’s Python, for example 3.12')
    .option('--image <image>', 'another image than the class’s')
    .option('--parent <session>', 'the session that this one is made for; a record without an effect', name);
}
