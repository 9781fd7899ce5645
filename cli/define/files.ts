import type { Command } from 'commander';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Place } from '../cluster/inside.ts';
import type { FilesListFlags, FilesRemoveFlags } from '../commands/files.ts';
import { place } from '../enter/place.ts';
import { name } from '../input/flags.ts';
import type { AddCommand } from './command.ts';
import { formatOption } from './options.ts';

const PLACE = 'a root of the session, and a path below it: work, workspace, state, output or agent';
const PLACE_OF_SESSION = 'ROOT is work, workspace, state, output or agent; nothing is written to the last two';

/** Defines `files` and `cp`, the commands on files of running sessions. */
export function defineFiles(program: Command, command: AddCommand, cli: Cli, done: (exitCode: number) => void): void {
  const files = program
    .command('files')
    .usage('ls|cat|rm')
    .helpCommand(false)
    .showHelpAfterError(`See: ${cli.name} files --help`)
    .description('Files of a running session.')
    .addHelpText(
      'after',
      `\nExample:\n  ${cli.name} files ls notes work\n  ${cli.name} files cat notes work/report.txt`,
    );
  const add = <Flags extends ClusterFlags>(
    word: string,
    usage: string,
    description: string,
    examples: string[],
    action: (session: string, at: Place, flags: Flags) => Promise<number>,
  ) =>
    files
      .command(word)
      .usage(`[flags] ${usage}`)
      .description(description)
      .addHelpText('after', `\nExample:\n${examples.map((example) => `  ${cli.name} files ${example}`).join('\n')}`)
      .showHelpAfterError(`See: ${cli.name} files ${word} --help`)
      .argument('<session>', 'the name of the session', name)
      .argument('<place>', PLACE, place)
      .action(async (session: string, at: Place, _flags, self: Command) =>
        done(await action(session, at, self.optsWithGlobals<Flags>())),
      );

  add(
    'ls',
    'SESSION ROOT[/PATH]',
    'Lists a folder of a running session.',
    ['ls notes work', 'ls notes state/cache -o json'],
    async (session, at, flags: FilesListFlags) =>
      (await import('../commands/files.ts')).listFiles(session, at, flags, cli),
  ).addOption(formatOption('json', 'yaml', 'name'));
  add(
    'cat',
    'SESSION ROOT/PATH',
    'Writes a file of a running session to stdout.',
    ['cat notes work/report.txt', 'cat notes state/notes.db > notes.db'],
    async (session, at, flags) => (await import('../commands/files.ts')).printFile(session, at, flags, cli),
  );
  add(
    'rm',
    'SESSION ROOT/PATH',
    'Deletes a file of a running session; with -r a folder with all that is in it.',
    ['rm notes work/report.txt', 'rm -r notes workspace/build'],
    async (session, at, flags: FilesRemoveFlags) =>
      (await import('../commands/files.ts')).removeFile(session, at, flags, cli),
  ).option('-r, --recursive', 'delete a folder with all that is in it');

  command(
    'cp FROM TO',
    'Copies a file or a folder from a running session to this machine, or from this machine to a session; a file appears as a whole or not at all.',
    [
      'cp notes:work/report.txt .',
      'cp notes:work/site ./site',
      'cp notes:state/. backup',
      'cp data.csv notes:workspace/data.csv',
      'cp ./site notes:work',
    ],
    async ([from, to]: [string, string], flags: ClusterFlags) =>
      (await import('../commands/cp.ts')).copy(from, to, flags, cli),
  )
    .argument('<from>', `SESSION:ROOT/PATH, or a path of this machine. ${PLACE_OF_SESSION}`)
    .argument('<to>', 'the other of the two; a folder that is there gets the copy under its own name');
}
