import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Cli } from '../cli.ts';
import { refused } from '../errors.ts';

/** Parts of a command line that show whether its first word is there. */
interface Given {
  /** Words of the command that belong to no flag, before and behind `--`. */
  words: readonly string[];
  /** Number of all words behind the first `--`; undefined without one. */
  behind: number | undefined;
  flags: { with?: string[]; filename?: string };
}

/** Names in errors of the first word of a command with a program, by the word in its usage. */
const FIRST: Record<string, string> = { NAME: 'the name', FILE: 'the file', SESSION: 'the session' };

/**
 * Refuses a command line whose first word is missing before `--`: the program would be taken for it. Most often `--with`, which takes
 * all words up to the next flag, has taken it.
 */
export function refuseMissingFirst(
  usage: string,
  { words, behind, flags }: Given,
  cli: Pick<Cli, 'name' | 'cwd'>,
): void {
  const [command = '', first = '', dashes] = usage.split(' ');
  const what = FIRST[first];
  if (what === undefined || dashes !== '--' || flags.filename !== undefined) return;
  if (words.length > (behind ?? 0)) return;
  const [last, ...others] = flags.with?.toReversed() ?? [];
  // A name is seldom that of a file that is there.
  const isTaken = last !== undefined && others.length > 0 && (first === 'FILE' || !existsSync(resolve(cli.cwd, last)));
  if (isTaken) {
    const line = `${cli.name} ${command} ${last} --with ${others.toReversed().join(' ')}`;
    throw refused(`--with took ${last} for a file; write ${what} first: ${line} -- PROGRAM ARGS…`);
  }
  if (behind === undefined) return;
  throw refused(`${what} is missing before --; write: ${cli.name} ${usage}`);
}
