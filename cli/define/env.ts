import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { name } from '../input/flags.ts';
import { formatOption } from './options.ts';

/** Defines `env`, the commands on Environments. */
export function defineEnv(program: Command, cli: Cli, done: (exitCode: number) => void): void {
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
        await (await import('../commands/env.ts')).createEnvironment(environment, words, self.optsWithGlobals(), cli),
      ),
    );
  add('get', 'NAME', 'Shows an Environment with its packages.', 'env get tools')
    .argument('<name>', 'name of the Environment', name)
    .addOption(formatOption('json', 'yaml', 'name'))
    .action(async (environment: string, _flags, self: Command) =>
      done(await (await import('../commands/env.ts')).showEnvironment(environment, self.optsWithGlobals(), cli)),
    );
  add(
    'check',
    'NAME',
    'Builds an Environment if necessary, starts its Python and compares the installed packages.',
    'env check tools',
  )
    .argument('<name>', 'name of the Environment', name)
    .action(async (environment: string, _flags, self: Command) =>
      done(await (await import('../commands/env-check.ts')).checkEnvironment(environment, self.optsWithGlobals(), cli)),
    );
  add('list', '', 'Lists Environments.', 'env list')
    .option('-A, --all-namespaces', 'list objects of all namespaces')
    .addOption(formatOption('json', 'yaml', 'wide', 'name'))
    .action(async (_flags, self: Command) =>
      done(await (await import('../commands/list.ts')).list('environments', self.optsWithGlobals(), cli)),
    );
  add('delete', 'NAME…', 'Deletes Environments. Sessions that have one keep it.', 'env delete tools')
    .argument('<name...>', 'names of the Environments', names)
    .action(async (all: string[], _flags, self: Command) =>
      done(await (await import('../commands/env.ts')).deleteEnvironments(all, self.optsWithGlobals(), cli)),
    );
}
