import { programsOn } from './programs.ts';
import { rewriteBackground } from './rewrite.ts';
import { isSettled } from './surroundings.ts';

/** The text as a bash of this environment and working directory is given it. */
export function rewriteForBash(text: string, env: Readonly<Record<string, string>>, cwd: string): string {
  return isSettled(env) ? rewriteBackground(text, programsOn(env.PATH ?? '', cwd)) : text;
}
