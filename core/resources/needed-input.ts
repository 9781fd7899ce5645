import type { Agent } from './agent.ts';

/**
 * Returns the clause that says which input every turn of the agent needs; undefined if a turn may have none. null counts
 * as none: it is the input of a turn that was given none.
 */
export function neededInput({ driver = 'Command', input = 'Stdin' }: Pick<Agent, 'driver' | 'input'>) {
  if (driver === 'Shell') return 'the driver Shell needs an object with a "command"';
  if (driver === 'Tools') return 'the driver Tools needs an object with "tool", "calls" or "method"';
  if (driver === 'Server') return undefined;
  if (input === 'Text') return 'agent.input Text needs a string';
  if (input === 'Args') return 'agent.input Args needs a value for $(INPUT)';
  return undefined;
}

/** Reports whether a turn was given no input. */
export const isNoInput = (input: unknown): boolean => input === undefined || input === null;
