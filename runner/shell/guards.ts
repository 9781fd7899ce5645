import { type Command, forEachChild, type ParsedScript, type SyntaxNode, type Word } from 'unbash';
import { argumentsOf, hasSlash, literalOf } from './words.ts';

/** Facts of a whole text that decide about each of its background lists. */
export interface Facts {
  functions: ReadonlySet<string>;
  /** True if the text changes the working directory: then a relative path cannot be resolved beforehand. */
  moves: boolean;
}

/** Characters that bash and a parser may treat differently: line ends of other systems, blanks of other scripts. */
const ODD_CHARACTERS = /[\0\r\v\f\u0085\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]/;

/**
 * Variables by which a text reads its own words or the way its programs are started, or that change the meaning of
 * names. Also the old arithmetic `$[ ]`, which versions of bash read differently.
 */
const TELLING =
  /\b(BASH_(ALIASES|CMDS|COMMAND|COMPAT|ENV|EXECUTION_STRING|FUNC_\w*)|BASHOPTS|SHELLOPTS|POSIXLY_CORRECT|EXECIGNORE|SHLVL)\b|\$_(?!\w)|\$\{[!#]?_(?!\w)|\$\[/;

/**
 * Builtins that can change the meaning of a name, make the shell report each command, or show the words of a job or
 * function.
 */
const UNSETTLING: ReadonlySet<string> = new Set([
  ...['.', 'alias', 'bg', 'bind', 'builtin', 'compgen', 'complete', 'compopt', 'enable', 'eval', 'fc', 'fg'],
  ...['hash', 'history', 'shopt', 'source', 'suspend', 'trap', 'type', 'unalias'],
]);

/** Options of `set` without any effect on the rewriting. */
const HARMLESS_FLAGS = /^[-+][euf]+$/;
const HARMLESS_OPTIONS: ReadonlySet<string> = new Set(['errexit', 'nounset', 'pipefail', 'noglob']);

const MOVES: ReadonlySet<string> = new Set(['cd', 'pushd', 'popd']);

/** Returns the facts of a text; undefined when something in it forbids any rewriting. */
export function factsOf(text: string, script: ParsedScript): Facts | undefined {
  if (ODD_CHARACTERS.test(text) || TELLING.test(text) || !keepsPath(text)) return undefined;
  const functions = new Set<string>();
  let moves = false;
  let settled = true;
  const visit = (node: SyntaxNode): void => {
    if (node.type === 'Script' && node.errors?.length) settled = false;
    // An extended glob is a syntax error for bash without `shopt -s extglob`. An unclosed here-document gives a warning
    // that shows a line of the text.
    else if (node.type === 'ExtendedGlob' || (node.type === 'HereDoc' && !node.closing)) settled = false;
    else if (node.type === 'Coproc') settled = false;
    else if (node.type === 'Function') {
      const name = literalOf(node.name);
      // A function `exec` would replace the builtin; a function named like a path would replace the program.
      if (name === undefined || name === 'exec' || name.includes('/')) settled = false;
      else functions.add(name);
    } else if (node.type === 'Command') {
      if (isUnsettling(node)) settled = false;
      moves ||= MOVES.has(commandName(node) ?? '');
    }
    if (settled) forEachChild(node, visit);
  };
  visit(script);
  return settled ? { functions, moves } : undefined;
}

/** Returns the name of the program or builtin, without a `command` before it. */
function commandName(command: Command): string | undefined {
  const name = literalOf(command.name);
  return name === 'command' ? argumentsOf(command).find((argument) => !argument?.startsWith('-')) : name;
}

function isUnsettling(command: Command): boolean {
  if (!command.name) return false;
  const name = commandName(command);
  const args = argumentsOf(command);
  if (name === undefined) {
    // A name with a slash is a program after any expansion.
    return literalOf(command.name) === 'command' ? args.length > 0 : !hasSlash(command.name);
  }
  if (UNSETTLING.has(name)) return true;
  // `command -V` shows a function.
  if (literalOf(command.name) === 'command' && args.some((argument) => !argument || /^-\w*V/.test(argument)))
    return true;
  switch (name) {
    case 'set':
      return !isHarmlessSet(args);
    case 'jobs':
      return args.length !== 1 || args[0] !== '-p';
    case 'wait':
    case 'kill':
    case 'disown':
      // An argument of these builtins can name a job by the words of its command.
      return command.args.some(({ text }) => /^["'\\]*%(?![\d%+-])/.test(text));
    case 'declare':
    case 'typeset':
    case 'local':
    case 'export':
    case 'readonly':
      return (
        args.length === 0 || command.args.some((argument) => argument.type === 'Word' && !isHarmlessName(argument))
      );
    case 'mapfile':
    case 'readarray':
      return args.some((argument) => argument === undefined || /^-\w*C/.test(argument));
    default:
      return false;
  }
}

/**
 * Reports whether a word of a declaration is a name, or an option that neither shows a function nor makes a reference.
 */
function isHarmlessName(word: Word): boolean {
  const argument = literalOf(word);
  return argument !== undefined && !/^[-+]\w*[fFpn]/.test(argument);
}

function isHarmlessSet(args: (string | undefined)[]): boolean {
  if (args.length === 0) return false;
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index];
    if (argument === '--') return true;
    if (argument === undefined) return false;
    // `-euo pipefail` is the usual form.
    const combined = /^([-+][euf]*)o$/.exec(argument);
    if (combined) {
      if (!HARMLESS_OPTIONS.has(args[index + 1] ?? '')) return false;
      index += 1;
    } else if (!HARMLESS_FLAGS.test(argument)) {
      return false;
    }
  }
  return true;
}

/**
 * Reports whether programs found on the PATH now are still found when they are started: the text may only add folders
 * to it.
 */
function keepsPath(text: string): boolean {
  for (const { index } of text.matchAll(/(?<![\w$]|\$\{)PATH\b/g)) {
    if (!/^PATH=("[^"]*\$\{?PATH\b[^"]*"|[^\s"';&|()<>]*\$\{?PATH\b)/.test(text.slice(index))) return false;
  }
  return true;
}
