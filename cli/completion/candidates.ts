import type { Argument, Command, Option } from 'commander';
import { ROOTS } from '../../core/enter/hello.ts';
import type { ClusterFlags } from '../cli.ts';

/** What can stand at the last word of a command line, found from the definitions of the commands alone. */

/** Kind of objects whose names complete a word. Commands are no objects: those of a session are named by their ids. */
export type Named = 'sessions' | 'turns' | 'sessionclasses' | 'environments' | 'namespaces' | 'commands';

export interface Candidates {
  /** Fixed words, with a description where there is one. */
  words: [word: string, description?: string][];
  /** Names of objects of the cluster; `session`: turns, or commands, of this session only. `prefix` goes before each of them. */
  names?: { of: Named[]; session?: string; prefix?: string };
  /** True where the word is a path. */
  files?: true;
  /** Flags before the word that choose cluster and namespace. */
  cluster: ClusterFlags;
}

const NAMED_BY_FLAG: Record<string, Named> = {
  '--attach': 'commands',
  '--class': 'sessionclasses',
  '--environment': 'environments',
  '--kill': 'commands',
  '--namespace': 'namespaces',
  '--parent': 'sessions',
  '--session': 'sessions',
  '--turn': 'turns',
};

/** Returns the candidates for the last of the words that stand after the program's name. */
export function candidates(program: Command, words: readonly string[]): Candidates {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  const place = { command: program, operands: [] as string[], cluster: {} as Candidates['cluster'] };
  let pending: Option | undefined;
  for (const word of before) {
    // Everything after -- belongs to the session's program.
    if (word === '--') return { words: [], files: true, cluster: place.cluster };
    if (pending && !(pending.variadic && word.startsWith('-'))) {
      note(pending, word, place.cluster);
      if (!pending.variadic) pending = undefined;
      continue;
    }
    pending = undefined;
    if (word.startsWith('-')) {
      const [flag = '', value] = split(word);
      const option = optionOf(place.command, flag);
      if (option && value !== undefined) note(option, value, place.cluster);
      else if (option && takesValue(option)) pending = option;
      continue;
    }
    const sub = place.operands.length === 0 ? subcommand(place.command, word) : undefined;
    if (sub) place.command = sub;
    else place.operands.push(word);
  }
  const { command, operands, cluster } = place;
  if (pending && !(pending.variadic && current.startsWith('-'))) {
    return { ...ofValue(pending, operands), cluster };
  }
  const [flag = '', value] = split(current);
  const option = current.startsWith('--') && value !== undefined ? optionOf(command, flag) : undefined;
  if (option) return { ...prefixed(ofValue(option, operands), `${flag}=`), cluster };
  if (current.startsWith('-')) return { words: flagsOf(command), cluster };
  if (command.commands.length > 0) {
    return { words: operands.length > 0 ? [] : subcommandsOf(command), cluster };
  }
  return { ...ofArgument(command, operands, current), cluster };
}

function split(word: string): [flag: string, value?: string] {
  const at = word.indexOf('=');
  return at === -1 ? [word] : [word.slice(0, at), word.slice(at + 1)];
}

const takesValue = (option: Option) => option.required || option.optional;
const chain = (command: Command): Command[] => (command.parent ? [command, ...chain(command.parent)] : [command]);
const optionOf = (command: Command, flag: string): Option | undefined =>
  chain(command)
    .flatMap(({ options }) => options)
    .find(({ long, short }) => flag === long || flag === short);
const subcommand = (command: Command, word: string) =>
  command.commands.find((each) => each.name() === word || each.aliases().includes(word));

const CLUSTER_FLAGS = ['namespace', 'kubeconfig', 'context', 'server', 'tokenFile', 'certificateAuthority'] as const;

function note(option: Option, value: string, cluster: Candidates['cluster']): void {
  const name = option.attributeName();
  const flag = CLUSTER_FLAGS.find((each) => each === name);
  if (flag) cluster[flag] = value;
}

function flagsOf(command: Command): Candidates['words'] {
  const options = chain(command).flatMap(({ options }) => options.filter(({ hidden }) => !hidden));
  const flags = options.flatMap(({ long, description }) => (long ? [[long, description] as [string, string]] : []));
  return [...flags, ['--help', 'display help for command']];
}

function subcommandsOf(command: Command): Candidates['words'] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((each) => [each.name(), each.description()]);
}

type Found = Omit<Candidates, 'cluster'>;

function ofValue(option: Option, operands: string[]): Found {
  if (option.argChoices) return { words: option.argChoices.map((choice) => [choice]) };
  const flag = option.long ?? '';
  if (flag === '--for') {
    const turn = { of: ['turns' as const], prefix: 'turn=', ...ofSession(operands) };
    return { words: [['ready'], ['suspended'], ['finished']], names: turn };
  }
  const of = NAMED_BY_FLAG[flag];
  if (of)
    return { words: [], names: { of: [of], ...(of === 'turns' || of === 'commands' ? ofSession(operands) : {}) } };
  return /[<[](file|path|dir)/.test(option.flags) ? { words: [], files: true } : { words: [] };
}

const ofSession = ([session]: string[]) => (session === undefined ? {} : { session });

function prefixed(found: Found, prefix: string): Found {
  const { words, names } = found;
  return {
    ...found,
    words: words.map(([word, ...rest]) => [prefix + word, ...rest]),
    ...(names ? { names: { ...names, prefix: prefix + (names.prefix ?? '') } } : {}),
  };
}

function ofArgument(command: Command, operands: string[], current: string): Found {
  const argument: Argument | undefined =
    command.registeredArguments[operands.length] ?? command.registeredArguments.findLast(({ variadic }) => variadic);
  if (!argument) return { words: [] };
  if (argument.argChoices) return { words: argument.argChoices.map((choice) => [choice]) };
  const isEnvironment = command.parent?.name() === 'env' && command.name() !== 'create';
  if (isEnvironment) return { words: [], names: { of: ['environments'] } };
  if (command.name() === 'get') return operands[0] === 'turn' ? named('turns') : withKinds(operands);
  if (command.name() === 'delete') return ofType(current);
  switch (argument.name()) {
    case 'session':
      return named('sessions');
    case 'session|turn':
      return named('sessions', 'turns');
    case 'place':
      return { words: ROOTS.map((root) => [root]) };
    case 'program':
    case 'file':
      return { words: [], files: true };
    case 'from':
    case 'to':
      return { ...named('sessions'), files: true };
    default:
      return { words: [] };
  }
}

const named = (...of: Named[]): Found => ({ words: [], names: { of } });
const withKinds = (operands: string[]): Found =>
  operands.length === 0 ? { ...named('sessions'), words: [['session'], ['turn']] } : named('sessions');

/** Types before a name. */
const TYPES: Record<string, Named> = { 'turn/': 'turns', 'environment/': 'environments' };

/** Names of sessions or, behind a type, of its objects. */
function ofType(current: string): Found {
  const type = current.slice(0, current.indexOf('/') + 1);
  const of = TYPES[type];
  if (of) return prefixed(named(of), type);
  return { ...named('sessions'), words: Object.keys(TYPES).map((word) => [word]) };
}
