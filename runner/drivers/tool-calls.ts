import { describe, isObject } from '../../core/result/describe.ts';
import { TurnFailure } from '../../core/result/failure.ts';

/** Maximum number of calls in one turn. */
const MAX_CALLS = 64;
const MAX_ID = 128;

export interface ToolCall {
  id: string;
  tool: string;
  args: Record<string, unknown>;
}

/** Request of a turn's input. `one`: the output is one result, not a list. */
export type ToolInput = { list: string } | { calls: ToolCall[]; one: boolean };

/**
 * Parses `{tool, args, call_id}`, `{calls: [...]}` of such, or `{method: "list_tools", parameters: {query}}`. Throws a
 * TurnFailure naming the field that is wrong.
 */
export function toolInput(input: unknown): ToolInput {
  if (!isObject(input))
    throw invalid(`input must be an object with "tool", "calls" or "method"; it is ${describe(input)}`);
  if (Object.hasOwn(input, 'method')) return { list: queryOf(input) };
  if (!Object.hasOwn(input, 'calls')) return { calls: [callOf(input, 'input', 1)], one: true };
  const { calls, ...rest } = input;
  const [other] = Object.keys(rest);
  if (other) throw invalid(`input.${quoted(other)} is not known beside input.calls`);
  if (!Array.isArray(calls) || calls.length === 0) throw invalid('input.calls must be a list of at least one call');
  if (calls.length > MAX_CALLS) throw invalid(`input.calls has ${calls.length} calls; a turn can have ${MAX_CALLS}`);
  const parsed = calls.map((call, i) => callOf(call, `input.calls[${i}]`, i + 1));
  const seen = new Set<string>();
  for (const [i, { id }] of parsed.entries()) {
    if (seen.has(id)) throw invalid(`input.calls[${i}].call_id is that of another call, too`);
    seen.add(id);
  }
  return { calls: parsed, one: false };
}

function queryOf({ method, parameters = {} }: Record<string, unknown>): string {
  if (method !== 'list_tools') throw invalid(`input.method must be "list_tools"; for a call give "tool" instead`);
  if (!isObject(parameters)) throw invalid(`input.parameters must be an object; it is ${describe(parameters)}`);
  const { query = '' } = parameters;
  if (typeof query !== 'string') throw invalid(`input.parameters.query must be a string; it is ${describe(query)}`);
  return query;
}

function callOf(call: unknown, field: string, number: number): ToolCall {
  if (!isObject(call)) throw invalid(`${field} must be an object with "tool"; it is ${describe(call)}`);
  const { tool, args = {}, call_id: id = `call-${number}`, ...rest } = call;
  const [other] = Object.keys(rest);
  if (other) throw invalid(`${field}.${quoted(other)} is not known; a call has "tool", "args" and "call_id"`);
  if (typeof tool !== 'string' || tool === '') {
    throw invalid(`${field}.tool must be the name of a tool; it is ${describe(tool)}`);
  }
  if (!isObject(args)) throw invalid(`${field}.args must be an object; it is ${describe(args)}`);
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID) {
    throw invalid(`${field}.call_id must be a string of 1 to ${MAX_ID} characters; it is ${describe(id)}`);
  }
  return { id, tool, args };
}

/** Quotes a key for an error, because a key can contain any text. */
function quoted(key: string): string {
  return /^\w{1,40}$/.test(key) ? key : 'a key of it';
}

function invalid(message: string): TurnFailure {
  return new TurnFailure('InvalidInput', message);
}
