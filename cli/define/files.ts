import type { Command } from 'commander';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { FilesListFlags } from '../commands/files.ts';
import { type Place, place } from '../enter/place.ts';
import { name } from '../input/flags.ts';
import type { AddCommand } from './command.ts';
import { formatOption } from './options.ts';

const PLACE = 'a root of the session, and a path below it: work, workspace, state, output or agent';

/** Defines `files` and `cp`, the commands on files of running sessions. */
export function defineFiles(program: Command, command: AddCommand, cli: Cli, done: (exitCode: number) => void): void {
  const files = program
    .command('files')
    .usage('ls|cat')
    .helpCommand(false)
    .showHelpAfterError(`See: ${cli.name} files --help`)
    .description('Files of a running session.')
    .addHelpText(
      'after',
      `\nExample:\n  ${cli.name} files ls notes work\n  ${cli.name} files cat notes work/report.txt`,
    );
  const add = (word: string, usage: string, description: string, examples: string[]) =>
    files
      .command(word)
      .usage(`[flags] ${usage}`)
      .description(description)
      .addHelpText('after', `\nExample:\n${examples.map((example) => `  ${cli.name} files ${example}`).join('\n')}`)
      .showHelpAfterError(`See: ${cli.name} files ${word} --help`)
      .argument('<session>', 'the name of the session', name)
      .argument('<place>', PLACE, place);

  add('ls', 'SESSION ROOT[/PATH]', 'Lists a folder of a running session.', [
    'ls notes work',
    'ls notes state/cache -o json',
  ])
    .addOption(formatOption('json', 'yaml', 'name'))
    .action(async (session: string, at: Place, _flags, self: Command) =>
      done(
        await (await import('../commands/files.ts')).listFiles(
          session,
          at,
          self.optsWithGlobals<FilesListFlags>(),
          cli,
        ),
      ),
    );
  add('cat', 'SESSION ROOT/PATH', 'Writes a file of a running session to stdout.', [
    'cat notes work/report.txt',
    'cat notes state/notes.db > notes.db',
  ]).action(async (session: string, at: Place, _flags, self: Command) =>
    done(
      await (await import('../commands/files.ts')).printFile(session, at, self.optsWithGlobals<ClusterFlags>(), cli),
    ),
  );

  command(
    'cp SESSION:ROOT/PATH LOCAL',
    'Copies a file or a folder from a running session to this machine; a file appears as a whole or not at all.',
    ['cp notes:work/report.txt .', 'cp notes:work/site ./site', 'cp notes:state/. backup'],
    async ([from, to]: [string, string], flags: ClusterFlags) =>
      (await import('../commands/cp.ts')).copy(from, to, flags, cli),
  )
    .argument('<session:place>', `the session, and ${PLACE}`)
    .argument('<local>', 'a folder that the copy gets its name in, or the name of the copy');
}
