import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../core/runtime.ts';
import { errorCode, TurnFailure } from '../errors.ts';
import type { SessionFacts, TurnRequest } from './driver.ts';
import { expand } from './placeholders.ts';

/** The kernel refuses a single argument of this many bytes, its terminating NUL included. */
const MAX_ARGUMENT_BYTES = 131_072;

/** The request that an agent reads as one line of JSON. Throws a TurnFailure naming the field that is wrong. */
export function requestOf(facts: SessionFacts, { turn, restored }: TurnRequest, clock: Clock): object {
  return {
    type: 'request',
    id: `${turn.turn}-${turn.attempt}`,
    input: turn.input,
    ...methodOf(turn.input),
    timestamp: new Date(clock.now()).toISOString(),
    session: { name: facts.name, uid: facts.uid, incarnation: facts.incarnation, ...(restored && { restored }) },
    turn: { name: turn.name, index: turn.index, attempt: turn.attempt },
  };
}

function methodOf(input: unknown): { method: string; parameters: object } | undefined {
  if (!isObject(input) || !Object.hasOwn(input, 'method')) return undefined;
  const { method, parameters = {} } = input;
  if (typeof method !== 'string' || method.trim() === '') {
    throw new TurnFailure('InvalidInput', `input.method must be a non-empty string; it is ${describe(method)}`);
  }
  if (!isObject(parameters)) {
    throw new TurnFailure('InvalidInput', `input.parameters must be an object; it is ${describe(parameters)}`);
  }
  return { method, parameters };
}

/** The input as text on stdin. */
export function textOf(input: unknown): string {
  if (typeof input === 'string') return input;
  throw new TurnFailure('InvalidInput', `input must be a string where agent.input is Text; it is ${describe(input)}`);
}

/**
 * `$(INPUT)` in the arguments is the input, a string as it is and anything else as JSON; `$(INPUT.a.b)` a field of it.
 * Each stays within its argument: no shell, no word splitting.
 */
export function argsWith(args: string[], input: unknown, standard: (name: string) => string | undefined): string[] {
  let used = false;
  const expanded = args.map((arg) =>
    expand(arg, (name) => {
      if (name !== 'INPUT' && !name.startsWith('INPUT.')) return standard(name);
      used = true;
      return argumentText(fieldOf(input, name), name);
    }),
  );
  if (!used) {
    throw new TurnFailure('InvalidInput', 'agent.input is Args and agent.args has no $(INPUT) or $(INPUT.field)');
  }
  return expanded;
}

/** Throws a TurnFailure for an argument that no process can be given. */
export function checkArguments(args: string[]): void {
  for (const [index, arg] of args.entries()) {
    if (arg.includes('\0')) {
      throw new TurnFailure('InvalidInput', `agent.args[${index}] holds a NUL character, which no argument can`);
    }
    const bytes = Buffer.byteLength(arg) + 1;
    if (bytes > MAX_ARGUMENT_BYTES) {
      throw new TurnFailure(
        'InvalidInput',
        `agent.args[${index}] has ${bytes - 1} bytes with the input in it; an argument can have ` +
          `${MAX_ARGUMENT_BYTES - 1}. Use agent.input Stdin or File`,
      );
    }
  }
}

function fieldOf(input: unknown, name: string): unknown {
  let value = input;
  for (const key of name.split('.').slice(1)) {
    if (!isObject(value) || !Object.hasOwn(value, key)) {
      throw new TurnFailure('InvalidInput', `the input has no field for $(${name}) in agent.args`);
    }
    value = value[key];
  }
  return value;
}

function argumentText(value: unknown, name: string): string {
  if (value === undefined) throw new TurnFailure('InvalidInput', `there is no input for $(${name}) in agent.args`);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A file that only its owner can read, gone after `remove`, also when it could not be written to its end. */
export function writeInputFile(directory: string, name: string, content: string): { path: string; remove: () => void } {
  const path = join(directory, name);
  const remove = () => rmSync(path, { force: true });
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    remove();
    throw new TurnFailure('InternalError', `the input file could not be written: ${errorCode(error)}`);
  }
  return { path, remove };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What kind of value it is, for an error message; never the value, which can be a secret. */
export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (value === '') return 'an empty string';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  return value === undefined ? 'absent' : `a ${typeof value}`;
}
