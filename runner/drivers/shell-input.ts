import { resolve } from 'node:path';
import { describe, isObject } from '../../core/result/describe.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { directoryProblem } from '../process/program.ts';

/** Input of a turn of the driver Shell. */
export interface ShellInput {
  command: string;
  /** Absolute path of an existing directory. */
  cwd: string;
  env: Record<string, string>;
  /** True if stderr is redirected to stdout, so that both keep the order in which they were written. */
  merge: boolean;
}

const FIELDS: readonly string[] = ['command', 'cwd', 'env', 'merge'];
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Variables with shell options, which a bash passes on to another that it starts. */
const OPTIONS: readonly string[] = ['BASHOPTS', 'SHELLOPTS'];
/** Size from which the kernel refuses a single argument or variable, its terminating NUL included; bytes. */
const MAX_BYTES = 131_072;

/** Throws a TurnFailure that names the field. `base` is the base of a relative `cwd`. */
export function shellInput(input: unknown, base: string): ShellInput {
  if (!isObject(input)) throw invalid('', `must be an object with a "command"; it is ${describe(input)}`);
  const unknown = Object.keys(input).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) {
    throw invalid('', `has a field ${JSON.stringify(unknown.slice(0, 64))}; there are ${FIELDS.join(', ')}`);
  }
  const { command, cwd = '.', env = {}, merge = false } = input;
  if (typeof command !== 'string') {
    throw invalid('.command', `must be a non-empty string; it is ${describe(command)}`);
  }
  if (command.trim() === '')
    throw invalid('.command', `is ${command === '' ? 'empty' : 'blank'}; give the text of a command`);
  checkText('.command', command);
  if (typeof cwd !== 'string' || cwd === '') throw invalid('.cwd', `must be a path; it is ${describe(cwd)}`);
  checkText('.cwd', cwd);
  const directory = resolve(base, cwd);
  const problem = directoryProblem(directory);
  if (problem !== undefined) throw invalid('.cwd', `${directory} ${problem}`);
  if (!isObject(env)) throw invalid('.env', `must be an object of strings; it is ${describe(env)}`);
  if (typeof merge !== 'boolean') throw invalid('.merge', `must be true or false; it is ${describe(merge)}`);
  return { command, cwd: directory, env: variables(env), merge };
}

function variables(env: Record<string, unknown>): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE.test(name)) {
      throw invalid('.env', `has ${JSON.stringify(name.slice(0, 64))}, which is no variable name`);
    }
    if (name.startsWith('BERTH_')) throw invalid(`.env.${name}`, 'names that begin with BERTH_ are the runner’s own');
    if (OPTIONS.includes(name)) throw invalid(`.env.${name}`, 'cannot be set; use set -o or shopt in the command');
    if (typeof value !== 'string') throw invalid(`.env.${name}`, `must be a string; it is ${describe(value)}`);
    checkText(`.env.${name}`, `${name}=${value}`);
    checked[name] = value;
  }
  return checked;
}

function checkText(field: string, text: string): void {
  if (text.includes('\0')) throw invalid(field, 'holds a NUL character, which no process can be given');
  const bytes = Buffer.byteLength(text) + 1;
  if (bytes > MAX_BYTES) throw invalid(field, `has ${bytes - 1} bytes; a process can be given ${MAX_BYTES - 1}`);
}

function invalid(field: string, problem: string): TurnFailure {
  return new TurnFailure('InvalidInput', `input${field} ${problem}`);
}
