import { programsOn } from './programs.ts';
import { rewriteBackground } from './rewrite.ts';
import { isSettled } from './surroundings.ts';

/** Returns the text for a bash with this environment and working directory. */
export function rewriteForBash(text: string, env: Readonly<Record<string, string>>, cwd: string): string {
  return isSettled(env) ? rewriteBackground(text, programsOn(env.PATH ?? '', cwd)) : text;
}
