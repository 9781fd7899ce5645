import { resolve } from 'node:path';
import { parseExact } from '../../core/json.ts';
import { describeProblem, findJsonProblem } from '../../core/json-problem.ts';
import { MAX_INPUT_BYTES } from '../../core/resources/limits.ts';
import type { Cli } from '../cli.ts';
import { CliError, refused } from '../errors.ts';
import { checked, decode, openFile } from '../input/input.ts';

/** Input of one session of a map. */
export interface Item {
  /** Line of the file, from 1. */
  line: number;
  input: unknown;
}

const NEWLINE = 0x0a;
/** Limit of a line, bytes: an input of 128 KiB is no longer even if it is indented. */
const MAX_LINE = 64 * MAX_INPUT_BYTES;

/**
 * Reads a file of JSON lines, - for stdin. Everything that is wrong with a line is reported with its number; with `asText`
 * every line has to be a string.
 */
export async function readItems(
  file: string,
  cli: Pick<Cli, 'cwd' | 'stdin'>,
  { asText }: { asText: boolean },
): Promise<Item[]> {
  const name = file === '-' ? 'stdin' : file;
  const source = file === '-' ? cli.stdin : openFile(resolve(cli.cwd, file), file);
  const items: Item[] = [];
  for await (const text of linesOf(source, name)) {
    const line = items.length + 1;
    items.push({ line, input: inputOf(text, `${name} line ${line}`, asText) });
  }
  return items;
}

function inputOf(text: string, what: string, asText: boolean): unknown {
  if (text.trim() === '') throw refused(`${what} is empty; write one JSON value on each line`);
  let input: unknown;
  try {
    input = parseExact(text);
  } catch {
    const problem = findJsonProblem(text);
    throw refused(`${what} is not JSON: column ${problem.column}: ${describeProblem(problem)}`);
  }
  if (asText && typeof input !== 'string') throw refused(`${what}: --input-as text: the input has to be a string`);
  return checked(input, what);
}

async function* linesOf(source: AsyncIterable<Buffer>, name: string): AsyncGenerator<string> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  let line = 1;
  const text = () => decode(Buffer.concat(pieces), `${name} line ${line}`);
  try {
    for await (const chunk of source) {
      let from = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
        pieces.push(chunk.subarray(from, end));
        yield text();
        [pieces, bytes, from] = [[], 0, end + 1];
        line++;
      }
      pieces.push(chunk.subarray(from));
      bytes += chunk.length - from;
      if (bytes > MAX_LINE) throw refused(`${name} line ${line} is longer than any input may be (128 KiB)`);
    }
  } catch (error) {
    if (error instanceof CliError || (error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw refused(`${name} cannot be read: ${(error as Error).message}`);
  }
  if (bytes > 0) yield text();
}
