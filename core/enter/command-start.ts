import { constants } from 'node:os';
import { describe, isObject } from '../result/describe.ts';
import type { CommandStart, EnterRefusal } from './hello.ts';

/** Form of a command's id, which its client chooses. */
export const COMMAND_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** Longest time limit of a command, seconds: 30 days. */
export const MAX_TIMEOUT_SECONDS = 30 * 86_400;
/** Limit of rows and columns, which the kernel counts in 16 bits. */
const MAX_SIZE = 65_535;

/** Returns the problem with a command's id as a refusal. */
export function idProblem(id: unknown): EnterRefusal | undefined {
  if (typeof id === 'string' && COMMAND_ID.test(id)) return undefined;
  return invalid('id', 'must have 1 to 128 letters, digits, ".", "_" and "-", and begin with a letter or digit');
}

/** Returns the problem with a signal's name as a refusal. */
export function signalProblem(signal: unknown): EnterRefusal | undefined {
  if (typeof signal === 'string' && Object.hasOwn(constants.signals, signal)) return undefined;
  return invalid('signal', 'must be the name of a signal, such as SIGINT');
}

/** Returns the problem with what should start a command as a refusal. */
export function startProblem(start: unknown): EnterRefusal | undefined {
  if (!isObject(start)) return invalid('start', `must be an object; it is ${describe(start)}`);
  const { command, cwd, env, timeoutSeconds, detach, stdin, tty } = start as { [K in keyof CommandStart]: unknown };
  if (!Array.isArray(command) || command.length === 0 || !command.every(isArgument) || command[0] === '') {
    return invalid('start.command', 'must be a list of the program and its arguments: texts without a NUL byte');
  }
  if (cwd !== undefined && (!isArgument(cwd) || cwd === '')) return invalid('start.cwd', 'must be a path');
  if (env !== undefined) {
    if (!isObject(env)) return invalid('start.env', 'must be an object of names and values');
    for (const [name, value] of Object.entries(env)) {
      if (!isArgument(name) || name === '' || name.includes('=')) {
        return invalid('start.env', `must have names without "=" and NUL; one is ${JSON.stringify(name)}`);
      }
      if (!isArgument(value)) return invalid(`start.env.${name}`, 'must be a text without a NUL byte');
    }
  }
  if (timeoutSeconds !== undefined && !isBetween(timeoutSeconds, 1, MAX_TIMEOUT_SECONDS)) {
    return invalid('start.timeoutSeconds', `must be a number from 1 to ${MAX_TIMEOUT_SECONDS} (30 days)`);
  }
  for (const [name, value] of Object.entries({ detach, stdin })) {
    if (value !== undefined && typeof value !== 'boolean') return invalid(`start.${name}`, 'must be true or false');
  }
  return tty === undefined ? undefined : terminalProblem(tty);
}

function terminalProblem(tty: unknown): EnterRefusal | undefined {
  if (!isObject(tty) || !isBetween(tty.rows, 1, MAX_SIZE) || !isBetween(tty.columns, 1, MAX_SIZE)) {
    return invalid('start.tty', `must have rows and columns from 1 to ${MAX_SIZE}`);
  }
  if (tty.term !== undefined && !isArgument(tty.term)) {
    return invalid('start.tty.term', 'must be the name of a terminal');
  }
  return undefined;
}

/** Returns the refusal of a field of a hello. `problem` goes on after the field's name. */
export function invalid(field: string, problem: string): EnterRefusal {
  return { code: 'Invalid', message: `${field} ${problem}`, field };
}

/** Reports whether the value is a text that a process can get: the kernel ends it at a NUL. */
function isArgument(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0');
}

function isBetween(value: unknown, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
}
