import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import type { ArtifactsDownloadFlags, ArtifactsListFlags } from '../commands/artifacts.ts';
import { name } from '../input/flags.ts';
import { formatOption } from './options.ts';

/** Defines `artifacts`, the commands on what turns leave in BERTH_OUTPUT_DIR. */
export function defineArtifacts(program: Command, cli: Cli, done: (exitCode: number) => void): void {
  const artifacts = program
    .command('artifacts')
    .usage('list|download')
    .helpCommand(false)
    .showHelpAfterError(`See: ${cli.name} artifacts --help`)
    .description('Files that turns have left in BERTH_OUTPUT_DIR.')
    .addHelpText(
      'after',
      `\nExample:\n  ${cli.name} artifacts list notes\n  ${cli.name} artifacts download notes -D out`,
    );
  const add = (word: string, usage: string, description: string, examples: string[]) =>
    artifacts
      .command(word)
      .usage(`[flags] ${usage}`)
      .description(description)
      .addHelpText('after', `\nExample:\n${examples.map((example) => `  ${cli.name} artifacts ${example}`).join('\n')}`)
      .showHelpAfterError(`See: ${cli.name} artifacts ${word} --help`)
      .argument('<session|turn>', 'the name of a session or of a turn', name);

  add('list', 'SESSION|TURN', 'Lists the artifacts of a turn, or of all turns of a session.', [
    'list notes',
    'list notes --turn notes-9dnwgnrqgfxtt -o json',
  ])
    .option('--turn <name>', 'list only those of this turn', name)
    .addOption(formatOption('json', 'yaml', 'name'))
    .action(async (what: string, _flags, self: Command) =>
      done(
        await (await import('../commands/artifacts.ts')).listArtifacts(
          what,
          self.optsWithGlobals<ArtifactsListFlags>(),
          cli,
        ),
      ),
    );
  add(
    'download',
    'SESSION|TURN [NAME…]',
    'Writes the artifacts of a turn into a folder: of the named turn, or of the newest one that has left some.',
    ['download notes', 'download notes report/index.html -D out', 'download notes-9dnwgnrqgfxtt --overwrite'],
  )
    .argument('[name...]', 'names of artifacts, or of folders of them; default: all')
    .option('--turn <name>', 'download those of this turn', name)
    .option('-D, --dir <dir>', 'the folder; it is created where it does not exist', '.')
    .option('--overwrite', 'replace files that have other content')
    .action(async (what: string, names: string[], _flags, self: Command) =>
      done(
        await (await import('../commands/artifacts.ts')).downloadArtifacts(
          what,
          names,
          self.optsWithGlobals<ArtifactsDownloadFlags>(),
          cli,
        ),
      ),
    );
}
