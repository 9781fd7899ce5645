import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { refuseMissingFirst } from './first-word.ts';

/** Adds a command; `action` gets its arguments and all flags, and resolves with the exit code. */
export type AddCommand = <Words extends unknown[], Flags>(
  usage: string,
  description: string,
  examples: string[],
  action: (words: Words, flags: Flags) => Promise<number>,
) => Command;

/** Returns a function that adds commands to the program. `line`: its command line. `done` gets the exit code of the command that ran. */
export function commandAdder(
  program: Command,
  line: readonly string[],
  cli: Cli,
  done: (exitCode: number) => void,
): AddCommand {
  const dashes = line.indexOf('--');
  const behind = dashes === -1 ? undefined : line.length - dashes - 1;
  return <Words extends unknown[], Flags>(
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
        const flags = self.optsWithGlobals();
        refuseMissingFirst(usage, { words: self.args, behind, flags }, cli);
        done(await action(self.processedArgs as Words, flags as Flags));
      });
    return added;
  };
}
