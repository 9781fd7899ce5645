import { type Command, Option } from 'commander';
import { attempts, cpu, duration, labels, memory, name, paths, session, several } from '../input/flags.ts';

/** Options that several commands share. */

export const textOption = () => new Option('--text <text>', 'the input as a string, unchanged');
export const textFileOption = () =>
  new Option('--text-file <file>', 'a file whose text is the input, unchanged; - for stdin');
export const inputOption = () => new Option('--input <json>', 'the input as JSON');
export const inputFileOption = () =>
  new Option(
    '--input-file <file>',
    'a file with the input as JSON; - for stdin. Default: a stdin that is a pipe or a file',
  );

export const attemptsOption = () =>
  new Option(
    '--attempts <number>',
    'maximum attempts if the turn’s pod is lost; only for turns that may run twice',
  ).argParser(attempts);

export const quietOption = () =>
  new Option('-q, --quiet', 'on a terminal, too, print the output alone, and what keeps the turn from starting');

export const yesOption = () => new Option('-y, --yes', 'do not ask; without a terminal nothing is asked');

export const formatOption = (...formats: string[]) =>
  new Option('-o, --output <format>', 'output format').choices(formats);

/** Adds the options of settings that a session can change after it was created. */
export function changeOptions(command: Command): void {
  command
    .option('--cpu <amount>', 'limit of CPU, for example 2 or 500m; default: the class’s', cpu)
    .option('--memory <amount>', 'limit of memory, for example 512Mi or 2Gi; default: the class’s', memory)
    .option(
      '--idle <duration>',
      'time without activity after which the session is suspended, for example 15m',
      duration,
    )
    .option(
      '--env <name[=value]>',
      'a variable for the program; NAME alone takes your own value; may be repeated',
      several,
    )
    .option(
      '--env-from-secret <name=secret/key>',
      'a variable for the program from a key of a Secret; may be repeated',
      several,
    )
    .option(
      '--with <path...>',
      'files and folders of the program, packed into a ConfigMap; they become its working directory',
      paths,
    )
    .option('--with-all', 'with --with: also .git, .venv, .env… and files that .gitignore and .berthignore name')
    .option('--environment <name>', 'an Environment with Python packages', name)
    .option(
      '--requirements <file>',
      'Python packages in a requirements file; creates an Environment for them, or uses an existing one',
    )
    .option('--python <version>', 'with --requirements: required version of the image’s Python, for example 3.12');
}

/** Adds the options of the agent. */
export function agentOptions(command: Command): void {
  command
    .option('--class <name>', 'the SessionClass; default: default')
    .addOption(
      new Option('--driver <driver>', 'mode in which turns run; default: the class’s, or command').choices([
        'command',
        'server',
        'shell',
        'tools',
      ]),
    )
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
    );
  changeOptions(command);
  command
    .option(
      '--workdir <dir>',
      'working directory of the program; default: the files of --with; on the embedded cluster otherwise yours',
    )
    .option('--image <image>', 'another image than the class’s')
    .option('--label <key=value>', 'a label of the session; may be repeated', labels)
    .option('--parent <session>', 'the session that this one is made for; a record without an effect', session);
}

/** Adds the options of commands that create one session, or what a manifest has. */
export function manifestOptions(command: Command): void {
  command
    .option('-f, --filename <file>', 'a manifest of a Session or a Turn, or both, in YAML or JSON; - for stdin')
    .addOption(
      new Option(
        '--dry-run <mode>',
        'create nothing; client: show what would be sent, server: have it checked',
      ).choices(['client', 'server']),
    );
}
