import {
  type AndOr,
  type Assignment,
  type Command,
  forEachChild,
  parse,
  type Redirection,
  type Statement,
  type SyntaxNode,
} from 'unbash';
import { type Facts, factsOf } from './guards.ts';
import { type IsProgram, programsOn } from './programs.ts';
import { argumentsOf, BUILTINS, literalOf } from './words.ts';

const EXEC = 'exec ';
/** Limit of the text that is parsed: parsing thousands of here-documents takes seconds. */
const MAX_BYTES = 32 * 1024;
/** Matches a name that no expansion, quoting or keyword changes. */
const PLAIN_NAME = /^[A-Za-z0-9_./][A-Za-z0-9_./+:-]*$/;
/** Variables that bash itself uses or sets: an assignment before one program works differently before `exec`. */
const SHELL_VARIABLE =
  /^(_|BASH.*|CDPATH|CHILD_MAX|COLUMNS|COMP_.*|COPROC|DIRSTACK|ENV|EPOCH.*|E?UID|EXECIGNORE|FCEDIT|FIGNORE|FUNC.*|GLOB.*|GROUPS|HIST.*|HOME|HOST.*|IFS|IGNOREEOF|INPUTRC|INSIDE_EMACS|LANG|LC_.*|LINE.*|LOCPATH|MACHTYPE|MAIL.*|MAPFILE|OLDPWD|OPT.*|OSTYPE|PATH|PIPESTATUS|POSIXLY_CORRECT|PPID|PROMPT_.*|PS[0-9]|PWD|RANDOM|READLINE_.*|REPLY|SECONDS|SHELL.*|SHLVL|SRANDOM|TERM.*|TEXTDOMAIN.*|TIMEFORMAT|TMOUT|TMPDIR|TZ|auto_resume|histchars)$/;

/**
 * Returns the text with `exec ` before the last simple command of each background list `A && B &`, `A || B &`, so that
 * no subshell waits for B and `$!` is B's pid. A list stays unchanged wherever bash could treat the new text
 * differently from the original; `docs/shell.md` lists the cases.
 */
export function rewriteBackground(text: string, isProgram: IsProgram): string {
  if (!text.includes('&') || Buffer.byteLength(text) > MAX_BYTES) return text;
  let places: number[];
  try {
    places = placesIn(text, isProgram);
  } catch {
    // The text is nested too deeply for the parser, so it stays unchanged.
    return text;
  }
  let rewritten = '';
  let from = 0;
  for (const place of places) {
    rewritten += text.slice(from, place) + EXEC;
    from = place;
  }
  return rewritten + text.slice(from);
}

/** Returns the positions for `exec `, in order. */
function placesIn(text: string, isProgram: IsProgram): number[] {
  const script = parse(text);
  const facts = factsOf(text, script);
  if (!facts) return [];
  const places: number[] = [];
  const visit = (node: SyntaxNode): void => {
    if (isOutOfReach(node)) return;
    if (node.type === 'Statement') {
      const place = placeIn(node, text, facts, isProgram);
      if (place !== undefined) places.push(place);
    }
    forEachChild(node, visit);
  };
  visit(script);
  return places.sort((a, b) => a - b);
}

/** Tests for text within words whose positions or time of evaluation are not the usual ones: only `$( )` is entered. */
function isOutOfReach(node: SyntaxNode): boolean {
  switch (node.type) {
    case 'CommandExpansion':
      return !node.text.startsWith('$(') || node.script?.source !== undefined;
    case 'HereDoc':
    case 'ProcessSubstitution':
    case 'ParameterExpansion':
    case 'TestCommand':
    case 'BraceExpansion':
      return true;
    default:
      return node.type.startsWith('Arithmetic') && node.type !== 'ArithmeticFor';
  }
}

function placeIn({ background, command: list }: Statement, text: string, facts: Facts, isProgram: IsProgram) {
  if (!background || list.type !== 'AndOr') return undefined;
  // The parser and the text must agree on the operator.
  if (!/^(?:[ \t]|\\\n)*&(?![&>])/.test(text.slice(list.end))) return undefined;
  const last = list.commands.at(-1);
  if (last?.type !== 'Command' || !canBeReplaced(last, text, facts, isProgram)) return undefined;
  if (callsFunction(list, facts) || leavesChildren(list)) return undefined;
  return last.name?.pos;
}

/** Reports whether the command behaves the same with `exec` before it. */
function canBeReplaced(command: Command, text: string, facts: Facts, isProgram: IsProgram): boolean {
  const { name } = command;
  if (!name || text.slice(name.pos, name.end) !== name.value || !PLAIN_NAME.test(name.value)) return false;
  if (BUILTINS.has(name.value)) return false;
  if (facts.moves && name.value.includes('/') && !name.value.startsWith('/')) return false;
  if (
    !command.prefix.every((part) => (part.type === 'Assignment' ? isPlainAssignment(part) : isPlainRedirection(part)))
  ) {
    return false;
  }
  if (
    !command.suffix.every((part) => part.type === 'Word' || (part.type !== 'Assignment' && isPlainRedirection(part)))
  ) {
    return false;
  }
  return !showsEnvironment(name.value, command) && isProgram(name.value);
}

function isPlainAssignment({ name, value, append, index }: Assignment): boolean {
  return !append && !index && value.type === 'Word' && !SHELL_VARIABLE.test(name);
}

function isPlainRedirection(redirection: Redirection): boolean {
  const { descriptor } = redirection;
  // bash uses descriptors from 10 on for its own files.
  if (descriptor && (descriptor.type !== 'FileDescriptor' || descriptor.value > 9)) return false;
  return redirection.type === 'HereDoc' ? redirection.closing !== undefined : redirection.target !== undefined;
}

/** `exec` decrements SHLVL and sets no `_`, which a command that prints the environment shows. */
function showsEnvironment(name: string, command: Command): boolean {
  const program = name.slice(name.lastIndexOf('/') + 1);
  if (program === 'printenv') return true;
  if (program !== 'env') return false;
  const run = argumentsOf(command).find((argument) => !/^[A-Za-z_]\w*=/.test(argument ?? ''));
  return run === undefined || run.startsWith('-') || /(^|\/)(print)?env$/.test(run);
}

/** Reports whether the list calls a function of the text, which may leave children or be the last command itself. */
function callsFunction(list: AndOr, { functions }: Facts): boolean {
  return contains(list, (node) => node.type === 'Command' && functions.has(literalOf(node.name) ?? ''));
}

/** Reports whether the list leaves processes of its own: the last command would become their parent. */
function leavesChildren(list: AndOr): boolean {
  return contains(
    list,
    (node) => (node.type === 'Statement' && node.background) || node.type === 'ProcessSubstitution',
  );
}

/** Reports whether the shell of the list itself runs such a node: a subshell has children of its own. */
function contains(list: AndOr, matches: (node: SyntaxNode) => boolean | undefined): boolean {
  let found = false;
  const visit = (node: SyntaxNode): void => {
    if (found || node.type === 'CommandExpansion' || node.type === 'Subshell') return;
    found = matches(node) ?? false;
    if (!found) forEachChild(node, visit);
  };
  visit(list);
  return found;
}

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
