import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, isObject } from '../../core/result/describe.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Clock } from '../../core/runtime.ts';
import { expand, isInput, namesInput } from '../../core/text/placeholders.ts';
import { errorCode } from '../system/errors.ts';
import type { SessionFacts, TurnRequest } from './driver.ts';

/** Size from which the kernel refuses a single argument, its terminating NUL included; bytes. */
const MAX_ARGUMENT_BYTES = 131_072;

/**
 * Builds the request that an agent reads as one line of JSON; its id is unique. Throws a TurnFailure naming the field
 * that is wrong.
 */
export function requestOf(
  facts: SessionFacts,
  { turn, restored, approval }: TurnRequest,
  clock: Clock,
): { id: string } {
  const request = {
    type: 'request',
    // A turn that continues has a request id of its own, so that the answer to the earlier request is not taken for the
    // new one's.
    id: [turn.turn, turn.attempt, approval?.requestId].filter(Boolean).join('-'),
    input: turn.input,
    ...methodOf(turn.input),
    timestamp: new Date(clock.now()).toISOString(),
    session: { name: facts.name, uid: facts.uid, incarnation: facts.incarnation, ...(restored && { restored }) },
    turn: { name: turn.name, index: turn.index, attempt: turn.attempt },
    ...(approval && { approval }),
  };
  return request;
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

/** Returns the input as text for stdin. */
export function textOf(input: unknown): string {
  if (typeof input === 'string') return input;
  throw new TurnFailure('InvalidInput', `input must be a string where agent.input is Text; it is ${describe(input)}`);
}

/** Name of the arguments in errors; the first of them is number `from` there. */
export interface ArgumentsPlace {
  field: string;
  from: number;
  /** True if the input has no content that the arguments would have to name. */
  inputNeedless?: boolean;
}

const AGENT_ARGS: ArgumentsPlace = { field: 'agent.args', from: 0 };

/**
 * Replaces `$(INPUT)` in the arguments by the input, a string as it is and anything else as JSON, and `$(INPUT.a.b)` by
 * a field of it. Each value stays within its argument: no shell, no word splitting. Throws a TurnFailure naming the
 * place.
 */
export function argsWith(
  args: string[],
  input: unknown,
  standard: (name: string) => string | undefined,
  { field, inputNeedless = false } = AGENT_ARGS,
): string[] {
  if (!inputNeedless && !namesInput(args)) {
    throw new TurnFailure('InvalidInput', `agent.input is Args and ${field} has no $(INPUT) or $(INPUT.field)`);
  }
  return args.map((arg) =>
    expand(arg, (name) => (isInput(name) ? argumentText(fieldOf(input, name, field), name, field) : standard(name))),
  );
}

/** Throws a TurnFailure for an argument that the kernel does not accept. */
export function checkArguments(args: string[], { field, from } = AGENT_ARGS): void {
  for (const [index, arg] of args.entries()) {
    const where = `${field}[${from + index}]`;
    if (arg.includes('\0')) {
      throw new TurnFailure('InvalidInput', `${where} holds a NUL character, which no argument can`);
    }
    const bytes = Buffer.byteLength(arg) + 1;
    if (bytes > MAX_ARGUMENT_BYTES) {
      throw new TurnFailure(
        'InvalidInput',
        `${where} has ${bytes - 1} bytes with the input in it; an argument can have ` +
          `${MAX_ARGUMENT_BYTES - 1}. Use agent.input Stdin or File`,
      );
    }
  }
}

function fieldOf(input: unknown, name: string, field: string): unknown {
  let value = input;
  for (const key of name.split('.').slice(1)) {
    if (!isObject(value) || !Object.hasOwn(value, key)) {
      throw new TurnFailure('InvalidInput', `the input has no field for $(${name}) in ${field}`);
    }
    value = value[key];
  }
  return value;
}

function argumentText(value: unknown, name: string, field: string): string {
  if (value === undefined) throw new TurnFailure('InvalidInput', `there is no input for $(${name}) in ${field}`);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Writes a file that only its owner can read. The file is removed by `remove`, and when writing it fails. */
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
