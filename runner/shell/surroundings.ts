/** Variables by which a bash defines functions or options before it reads its text. */
const UNSETTLING =
  /^(BASH_ENV|BASHOPTS|BASH_COMPAT|BASH_FUNC_.*|BASH_LOADABLES_PATH|EXECIGNORE|POSIXLY_CORRECT|SHELLOPTS)$/;

/** Whether a name means to a bash of this environment what it means to every other. */
export function isSettled(env: Readonly<Record<string, string>>): boolean {
  return !Object.keys(env).some((name) => UNSETTLING.test(name));
}
