import { createReadStream, existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { tooDeepAt } from '../core/depth.ts';
import { lostNumber, parseExact } from '../core/json.ts';
import { clip, jsonBytes, KiB, MAX_INPUT_BYTES, MAX_JSON_DEPTH } from '../core/resources/limits.ts';
import type { Cli } from './cli.ts';
import { refused } from './errors.ts';
import { findJsonProblem } from './json-problem.ts';

export interface InputFlags {
  input?: string;
  inputFile?: string;
}

/** Limit of the text that is read: no input of 128 KiB is longer, however it is indented. */
const MAX_TEXT_BYTES = 64 * MAX_INPUT_BYTES;

/**
 * Reads the turn's input from `--input` or `--input-file`; undefined without either. Throws an error that names the
 * problem and its place. With `asText` only a string is allowed.
 */
export async function readInput(
  flags: InputFlags,
  cli: Pick<Cli, 'cwd' | 'stdin'>,
  asText = false,
  flag = '--input',
): Promise<unknown> {
  const value = await readAny(flags, cli, flag);
  if (asText && typeof value !== 'string') {
    throw refused(`--input-as text: the input has to be a JSON string, for example --input '"hello"'`);
  }
  return value;
}

async function readAny(flags: InputFlags, cli: Pick<Cli, 'cwd' | 'stdin'>, flag: string): Promise<unknown> {
  if (flags.input !== undefined && flags.inputFile !== undefined) {
    throw refused('--input and --input-file are both given; give one of them');
  }
  if (flags.input !== undefined) return checked(parse(flags.input, flag, hint(flags.input, cli.cwd, flag)), flag);
  if (flags.inputFile === undefined) return undefined;
  const what = flags.inputFile === '-' ? 'stdin (--input-file -)' : `--input-file ${flags.inputFile}`;
  return checked(parse(await readText(flags.inputFile, what, cli), what), what);
}

async function readText(path: string, what: string, cli: Pick<Cli, 'cwd' | 'stdin'>): Promise<string> {
  const source = path === '-' ? cli.stdin : openFile(resolve(cli.cwd, path), what);
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
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw refused(`${what} is not UTF-8 text; JSON has to be`);
  }
}

function openFile(path: string, what: string): AsyncIterable<Buffer> {
  const facts = statSync(path, { throwIfNoEntry: false });
  if (!facts) throw refused(`${what}: there is no file ${path}`);
  if (facts.isDirectory()) throw refused(`${what}: ${path} is a directory; name a file with JSON in it`);
  return createReadStream(path);
}

function parse(text: string, what: string, advice = ''): unknown {
  try {
    return parseExact(text);
  } catch {
    const { line, column, problem } = findJsonProblem(text);
    throw refused(`${what} is not JSON: line ${line}, column ${column}: ${problem}${advice}`);
  }
}

function checked(value: unknown, what: string): unknown {
  const place = tooDeepAt(value, '');
  if (place !== undefined) {
    throw refused(
      `${what}: more than ${MAX_JSON_DEPTH} arrays and objects lie within each other, at ${place}; flatten it, or give the data as a string`,
    );
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

/** Guesses the intention behind a wrong input. */
function hint(text: string, cwd: string, flag: string): string {
  if (flag === '--input' && text !== '' && existsSync(resolve(cwd, text)))
    return `\nTo read the file ${text}: --input-file ${text}`;
  if (/^[\p{L}_][^"'{}[\]]*$/u.test(text)) return `\nA string is written with its quotes: ${flag} '"${text}"'`;
  if (/^[{[]/.test(text) && !text.includes('"')) return `\nKeys and strings need double quotes: ${flag} '{"n": 3}'`;
  return '';
}
