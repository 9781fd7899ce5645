import { Argument, type Command } from 'commander';
import type { Cli } from '../cli.ts';
import type { DoctorFlags } from '../commands/doctor.ts';
import type { KeysFlags } from '../commands/keys.ts';
import type { VersionFlags } from '../commands/version.ts';
import { SHELLS, type Shell } from '../completion/scripts.ts';
import { refused } from '../errors.ts';
import type { AddCommand } from './command.ts';
import { formatOption } from './options.ts';

/** Defines the commands about the program itself. */
export function defineTools(program: Command, command: AddCommand, cli: Cli): void {
  command(
    'version',
    'Prints the version of this program, and of Berth and Kubernetes in the cluster.',
    ['version', 'version --client', 'version -o json'],
    async (_words: [], flags: VersionFlags) => (await import('../commands/version.ts')).version(flags, cli),
  )
    .option('--client', 'print the version of this program only')
    .addOption(formatOption('json', 'yaml'));

  command(
    'doctor',
    'Checks an installation as you see it, and says what to do about what is wrong; exit code 1 where something is.',
    ['doctor', 'doctor --namespace team -o json', 'doctor --server https://berth.example.com --token-file token'],
    async (_words: [], flags: DoctorFlags) => (await import('../commands/doctor.ts')).doctor(flags, cli),
  ).addOption(formatOption('json'));

  command(
    'keys',
    'Shows the master keys of the installations, what still needs each of them, and whether it may be removed.',
    ['keys', 'keys -o json'],
    async (_words: [], flags: KeysFlags) => (await import('../commands/keys.ts')).keys(flags, cli),
  ).addOption(formatOption('json'));

  command(
    'completion bash|zsh|fish',
    'Prints a script that completes commands, flags and names in a shell.',
    ['completion bash >~/.local/share/bash-completion/completions/berth', 'completion fish | source'],
    async ([shell]: [Shell]) => (await import('../commands/completion.ts')).completion(shell, cli),
  ).addArgument(new Argument('<shell>', 'the shell').choices(SHELLS));

  command(
    'help [COMMAND]',
    'Prints the help of a command, as its --help does.',
    ['help turn', 'help local up'],
    async ([words]: [string[]]) => {
      commandOf(program, words, cli).outputHelp();
      return 0;
    },
  ).argument('[command...]', 'the command; default: all of them');
}

/** Returns the command of these words. */
function commandOf(program: Command, words: string[], cli: Cli): Command {
  let found: Command | undefined = program;
  for (const word of words) {
    found = found?.commands.find((each) => each.name() === word || each.aliases().includes(word));
  }
  if (!found) throw refused(`there is no command "${words.join(' ')}"; to see all commands: ${cli.name} --help`);
  return found;
}

/** Defines the command that the completion scripts call. It is not listed. */
export function defineComplete(program: Command, cli: Cli, done: (exitCode: number) => void): void {
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) =>
      done(await (await import('../commands/completion.ts')).complete(program, words, cli)),
    );
}
