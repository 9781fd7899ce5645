import { programsOn } from './programs.ts';
import { rewriteBackground } from './rewrite.ts';

/** Returns the text for a bash with this environment and working directory. */
export function rewriteForBash(text: string, env: Readonly<Record<string, string>>, cwd: string): string {
  return isPlainEnvironment(env) ? rewriteBackground(text, programsOn(env.PATH ?? '', cwd)) : text;
}

/** Variables by which a bash defines functions or options before it reads its text. */
const UNSETTLING =
  /^(BASH_ENV|BASHOPTS|BASH_COMPAT|BASH_FUNC_.*|BASH_LOADABLES_PATH|EXECIGNORE|POSIXLY_CORRECT|SHELLOPTS)$/;

/** Reports whether names mean the same to a bash of this environment as to every other bash. */
export function isPlainEnvironment(env: Readonly<Record<string, string>>): boolean {
  return !Object.keys(env).some((name) => UNSETTLING.test(name));
}
