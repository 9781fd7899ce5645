import { type Command, forEachChild, type ParsedScript, type SyntaxNode, type Word } from 'unbash';
import { argumentsOf, hasSlash, literalOf } from './words.ts';

/** What of a whole text decides about each of its background lists. */
export interface Facts {
  functions: ReadonlySet<string>;
  /** Whether the text itself changes the working directory: a relative path names nothing then that is known before. */
  moves: boolean;
}

/** Characters that bash and a parser can take differently: line ends of other systems, blanks of other scripts. */
const ODD_CHARACTERS = /[\0\r\v\f\u0085\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]/;

/**
 * Variables by which a text sees its own words, the way its programs are started, or has names mean something else; and
 * the old arithmetic `$[ ]`, which not every bash reads alike.
 */
const TELLING =
  /\b(BASH_(ALIASES|CMDS|COMMAND|COMPAT|ENV|EXECUTION_STRING|FUNC_\w*)|BASHOPTS|SHELLOPTS|POSIXLY_CORRECT|EXECIGNORE|SHLVL)\b|\$_(?!\w)|\$\{[!#]?_(?!\w)|\$\[/;

/**
 * Builtins after which a name need not mean what it seems to, the shell tells of each command, or the words of a job or
 * function are shown.
 */
const UNSETTLING: ReadonlySet<string> = new Set([
  ...['.', 'alias', 'bg', 'bind', 'builtin', 'compgen', 'complete', 'compopt', 'enable', 'eval', 'fc', 'fg'],
  ...['hash', 'history', 'shopt', 'source', 'suspend', 'trap', 'type', 'unalias'],
]);

/** Options of `set` that leave everything alone that matters here. */
const HARMLESS_FLAGS = /^[-+][euf]+$/;
const HARMLESS_OPTIONS: ReadonlySet<string> = new Set(['errexit', 'nounset', 'pipefail', 'noglob']);

const MOVES: ReadonlySet<string> = new Set(['cd', 'pushd', 'popd']);

/** The facts of a text; undefined when something in it keeps all of it untouched. */
export function factsOf(text: string, script: ParsedScript): Facts | undefined {
  if (ODD_CHARACTERS.test(text) || TELLING.test(text) || !keepsPath(text)) return undefined;
  const functions = new Set<string>();
  let moves = false;
  let settled = true;
  const visit = (node: SyntaxNode): void => {
    if (node.type === 'Script' && node.errors?.length) settled = false;
    // Without `shopt -s extglob` the one is a syntax error to bash, the other a warning with a line of the text.
    else if (node.type === 'ExtendedGlob' || (node.type === 'HereDoc' && !node.closing)) settled = false;
    else if (node.type === 'Coproc') settled = false;
    else if (node.type === 'Function') {
      const name = literalOf(node.name);
      // A function "exec" would take the place of the builtin; a path as a name is a path no more.
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

/** The name of what runs, without a `command` before it. */
function commandName(command: Command): string | undefined {
  const name = literalOf(command.name);
  return name === 'command' ? argumentsOf(command).find((argument) => !argument?.startsWith('-')) : name;
}

function isUnsettling(command: Command): boolean {
  if (!command.name) return false;
  const name = commandName(command);
  const args = argumentsOf(command);
  if (name === undefined) {
    // Whatever it expands to, with a slash it is a program.
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
      // A job by the words of its command.
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

/** Of a declaration: a name, or options that show no function and make no reference. */
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
    // `-euo pipefail` is the usual way to say it.
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

/** Whether the programs that are on the PATH now still are when they are started: folders are only added to it. */
function keepsPath(text: string): boolean {
  for (const { index } of text.matchAll(/(?<![\w$]|\$\{)PATH\b/g)) {
    if (!/^PATH=("[^"]*\$\{?PATH\b[^"]*"|[^\s"';&|()<>]*\$\{?PATH\b)/.test(text.slice(index))) return false;
  }
  return true;
}
