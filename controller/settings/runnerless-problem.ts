import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { CachedSession, Problem } from '../world/world.ts';

/** Refusal of session settings that need a runner, for a class with runner None; agent and persistence have their own checks. */
export function runnerlessProblem(
  { timeouts }: CachedSession['spec'],
  { runner }: SessionClassSpec,
): Problem | undefined {
  if (runner !== 'None' || timeouts?.stall === undefined) return undefined;
  const message =
    'spec.timeouts.stall: is set, but with the class’s runner None nobody sees that a turn is silent; leave it out';
  return { reason: 'InvalidSpec', message };
}
