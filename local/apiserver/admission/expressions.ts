import type { Environment, ParseResult } from '@marcbachmann/cel-js';
import { type FieldError, invalid } from '../fields.ts';
import type { Json } from '../object.ts';
import { kubernetesCel } from '../validation/cel-library.ts';
import { registerAuthorizer } from './authorizer.ts';

/**
 * Places of an expression in a policy, which differ in their variables: a match condition sees no `variables`, a message
 * no `authorizer`.
 */
export type Place = 'condition' | 'validation' | 'message';

const common = () =>
  registerAuthorizer(kubernetesCel())
    .registerVariable('object', 'dyn')
    .registerVariable('oldObject', 'dyn')
    .registerVariable('request', 'dyn')
    .registerVariable('namespaceObject', 'dyn');

const environments: Record<Place, Environment> = {
  condition: common().registerVariable('authorizer', 'Authorizer'),
  validation: common().registerVariable('authorizer', 'Authorizer').registerVariable('variables', 'dyn'),
  message: common().registerVariable('variables', 'dyn'),
};

/** Returns the error of an expression that cannot be compiled or has another type than `wanted`, under its path. */
export function expressionErrors(
  expression: string,
  place: Place,
  wanted: 'bool' | 'string' | 'dyn',
  path: string,
): FieldError[] {
  const { valid, type, error } = environments[place].check(expression);
  if (!valid) return [invalid(path, expression, `compilation failed: ERROR: ${error?.message}`)];
  // The API server knows the types of variables; here they are not known.
  const isUnknown = type === 'dyn' && /\bvariables\./.test(expression);
  if (wanted === 'dyn' || type === wanted || isUnknown) return [];
  return [invalid(path, expression, `must evaluate to ${wanted} but got ${type}`)];
}

const parsed: Record<Place, Map<string, ParseResult>> = {
  condition: new Map(),
  validation: new Map(),
  message: new Map(),
};

/** Evaluates an expression of a stored policy. Throws with the API server's words when it cannot be evaluated. */
export function evaluate(expression: string, place: Place, variables: Json): unknown {
  let run = parsed[place].get(expression);
  if (!run) {
    run = environments[place].parse(expression);
    parsed[place].set(expression, run);
  }
  try {
    return run(variables);
  } catch (error) {
    const [reason] = (error as Error).message.split('\n');
    throw new Error(`expression '${expression}' resulted in error: ${reason}`);
  }
}
