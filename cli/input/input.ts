import { createReadStream, existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { tooDeepAt } from '../../core/depth.ts';
import { lostNumber, parseExact } from '../../core/json.ts';
import { describeProblem, findJsonProblem } from '../../core/json-problem.ts';
import type { Agent } from '../../core/resources/agent.ts';
import { clip, jsonBytes, KiB, MAX_INPUT_BYTES, MAX_JSON_DEPTH } from '../../core/resources/limits.ts';
import { mergedAgent } from '../../core/resources/merged-agent.ts';
import { isNoInput, neededInput } from '../../core/resources/needed-input.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import { LONE_SURROGATE, loneSurrogateAt } from '../../core/text/lone-surrogate.ts';
import type { Cli } from '../cli.ts';
import { refused } from '../errors.ts';
import { readPiped } from './stdin.ts';

export interface InputFlags {
  input?: string;
  inputFile?: string;
  text?: string;
  textFile?: string;
  /** A text that stands alone on the command line. */
  word?: string;
}

type Surroundings = Pick<Cli, 'cwd' | 'stdin' | 'clock' | 'say'>;

const FLAGS = {
  word: 'TEXT',
  input: '--input',
  inputFile: '--input-file',
  text: '--text',
  textFile: '--text-file',
} as const;

/** Limit of the text that is read: an input of 128 KiB is no longer even if it is indented. */
const MAX_TEXT_BYTES = 64 * MAX_INPUT_BYTES;

/**
 * Reads the turn's input from its flag or, without one, from a stdin that is a pipe or a file; undefined if there is
 * none. Throws an error that names the problem and its place. With `asText` only a string is allowed. `stdinTaken`:
 * another flag reads stdin.
 */
export async function readInput(
  flags: InputFlags,
  cli: Surroundings,
  { asText = false, stdinTaken = false }: { asText?: boolean; stdinTaken?: boolean } = {},
): Promise<unknown> {
  const [flag, other] = (Object.keys(FLAGS) as (keyof typeof FLAGS)[]).filter((name) => flags[name] !== undefined);
  if (flag && other) throw refused(`${FLAGS[flag]} and ${FLAGS[other]} are both given; give one of them`);
  if (stdinTaken && (flags.inputFile === '-' || flags.textFile === '-')) {
    throw refused('stdin can be read once only, and two flags read it; name a file in one of them');
  }
  const value = flag ? await given(flags, cli) : stdinTaken ? undefined : await pipedInput(cli);
  if (asText && value !== undefined && typeof value !== 'string') {
    throw refused('--input-as text: the input has to be a string; give it with --text or --text-file');
  }
  return value;
}

/** Parses the JSON of a flag. Throws an error that names the flag, the problem and its place. */
export function parseFlag(flag: string, text: string, hint = quotesHint(text, flag)): unknown {
  return checked(parse(text, flag, hint), flag);
}

/** Refuses a turn without an input where the agent needs one. `allowed`: the session's class, if it is known. */
export function refuseMissingInput(
  input: unknown,
  agent: Agent | undefined,
  allowed: SessionClassSpec | undefined,
): void {
  if (!isNoInput(input) || !allowed) return;
  const needed = neededInput(mergedAgent(agent ?? {}, allowed.agent ?? {}));
  if (needed === undefined) return;
  throw refused(
    `there is no input, and ${needed}; give it with --text TEXT, --input JSON, --text-file FILE or --input-file FILE, or pipe JSON into the command`,
  );
}

async function given({ word, input, inputFile, text, textFile }: InputFlags, cli: Surroundings): Promise<unknown> {
  if (word !== undefined) return checked(word, 'TEXT');
  if (input !== undefined) return parseFlag('--input', input, inputHint(input, cli.cwd));
  if (text !== undefined) return checked(text, '--text');
  const [flag, file] = inputFile === undefined ? ['--text-file', textFile ?? ''] : ['--input-file', inputFile];
  const what = file === '-' ? `stdin (${flag} -)` : `${flag} ${file}`;
  const source = file === '-' ? cli.stdin : openFile(resolve(cli.cwd, file), what);
  const bytes = await collect(source, what);
  if (flag === '--text-file') return checked(decode(bytes, what, 'KeepMark'), what);
  return checked(parse(decode(bytes, what), what, `\nTo give it as text: --text-file ${file}`), what);
}

async function pipedInput(cli: Surroundings): Promise<unknown> {
  const bytes = await readPiped(cli, (source) => collect(source, 'stdin'));
  if (bytes === undefined || bytes.length === 0) return undefined;
  const advice = '\nTo give it as text: --text-file -\nTo leave stdin alone: </dev/null';
  return checked(parse(decode(bytes, 'stdin'), 'stdin', advice), 'stdin');
}

/** Reads a text to its end; `what` names it in errors. */
export async function collect(source: AsyncIterable<Buffer>, what: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of source) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_TEXT_BYTES) throw tooLarge(what, `more than ${MAX_TEXT_BYTES / KiB} KiB`);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw refused(`${what} cannot be read: ${(error as Error).message}`);
  }
  return Buffer.concat(chunks);
}

/** Returns the text of the bytes; `what` names it in errors. A byte order mark is dropped, unless the text is to be unchanged. */
export function decode(bytes: Buffer, what: string, mark: 'DropMark' | 'KeepMark' = 'DropMark'): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: mark === 'KeepMark' }).decode(bytes);
  } catch {
    throw refused(`${what} is ${isUtf16(bytes) ? 'UTF-16' : 'not UTF-8'} text; write it in UTF-8`);
  }
}

/** Reports whether text begins with the byte order mark of UTF-16, as the shell and editors of Windows write it. */
const isUtf16 = ([first, second]: Buffer): boolean =>
  (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);

/** Opens a file for reading; refuses one that does not exist. */
export function openFile(path: string, what: string): AsyncIterable<Buffer> {
  const facts = statSync(path, { throwIfNoEntry: false });
  if (!facts) throw refused(`${what}: there is no file ${path}`);
  if (facts.isDirectory()) throw refused(`${what}: ${path} is a directory; name a file`);
  return createReadStream(path);
}

function parse(text: string, what: string, advice: string): unknown {
  try {
    return parseExact(text);
  } catch {
    const problem = findJsonProblem(text);
    throw refused(
      `${what} is not JSON: line ${problem.line}, column ${problem.column}: ${describeProblem(problem)}${advice}`,
    );
  }
}

/** Refuses a value that is too deep or too large, or a number or text of it that would not arrive exactly. */
export function checked(value: unknown, what: string): unknown {
  const place = tooDeepAt(value, '');
  if (place !== undefined) {
    throw refused(
      `${what}: more than ${MAX_JSON_DEPTH} arrays and objects lie within each other, at ${place}; flatten it, or give the data as a string`,
    );
  }
  const broken = loneSurrogateAt(value);
  if (broken !== undefined) {
    const path = clip(broken.toWellFormed(), KiB);
    throw refused(`${path === '' ? what : `${what}: ${path}`} ${LONE_SURROGATE}`);
  }
  const lost = lostNumber(value);
  if (lost) {
    const number = clip(lost.number, KiB);
    const where = lost.path ? `${what}: ${clip(lost.path, KiB)}` : what;
    throw refused(`${where}: the number ${number} cannot be kept exactly; write it as a string: "${number}"`);
  }
  const bytes = jsonBytes(value);
  if (bytes > MAX_INPUT_BYTES) throw tooLarge(what, `${bytes} bytes`);
  return value;
}

function tooLarge(what: string, size: string) {
  return refused(
    `${what}: the input has ${size} as JSON; at most ${MAX_INPUT_BYTES} bytes (128 KiB) are allowed. Pass a path or URL to the data instead`,
  );
}

/** Guesses the intention behind an `--input` that is not JSON. */
function inputHint(text: string, cwd: string): string {
  // curl and others read a file that is named after an @.
  const file = text.replace(/^@/, '');
  if (file !== '' && existsSync(resolve(cwd, file))) return `\nTo read the file ${file}: --input-file ${file}`;
  if (/^\s*(?:["{[]|$)/.test(text)) return keysHint(text, '--input');
  return `\nTo give it as text: --text ${shellQuoted(text)}`;
}

/** Guesses the intention behind another flag that is not JSON. */
function quotesHint(text: string, flag: string): string {
  if (/^[\p{L}_][^"'{}[\]]*$/u.test(text)) return `\nA string is written with its quotes: ${flag} '"${text}"'`;
  return keysHint(text, flag);
}

function keysHint(text: string, flag: string): string {
  if (!/^[{[]/.test(text) || text.includes('"')) return '';
  return `\nKeys and strings need double quotes: ${flag} '{"n": 3}'`;
}

/** Longest text that a hint repeats, characters. */
const MAX_REPEATED = 80;

/** Returns the text as a word of a POSIX shell, or a placeholder for a long one. */
function shellQuoted(text: string): string {
  if (text.length > MAX_REPEATED) return 'TEXT';
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
