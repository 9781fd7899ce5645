/** What some tests need of a machine. */
export type Need = 'keeper' | 'agent-tool' | 'root' | 'pid-namespaces' | 'memory-cgroup' | 'python';

/** Needs that must be met, separated by commas: `.ci/run` lists them all. */
const REQUIRED = new Set((process.env.REQUIRE ?? '').split(','));

/**
 * For the option `skip` of tests that need something: false where the machine has it, else the reason. Throws where REQUIRE
 * names the need, so that the file fails instead of being skipped.
 */
export function skipWithout(need: Need, has: boolean, reason: string): string | false {
  if (has) return false;
  if (REQUIRED.has(need)) throw new Error(`REQUIRE names "${need}", but: ${reason}`);
  return reason;
}
