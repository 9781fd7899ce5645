import type { Agent } from './agent.ts';

/** Problem of an agent, merged over that of its class, that names no program although its driver starts one. */
export function missingProgram({ driver = 'Command', command = [] }: Agent): string | undefined {
  if ((driver !== 'Command' && driver !== 'Server') || command.length > 0) return undefined;
  return 'is not set, and the class has no default; set the program to run';
}
