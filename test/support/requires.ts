import type { TestOptions } from 'vitest';

/** Requirements of some tests on the machine. */
const NEEDS = ['keeper', 'agent-tool', 'root', 'pid-namespaces', 'memory-cgroup', 'python', 'zsh', 'fish'] as const;
export type Need = (typeof NEEDS)[number];

/** Needs that must be met, separated by commas: `.ci/run` lists them all. */
const REQUIRED = new Set((process.env.REQUIRE ?? '').split(',').filter((name) => name !== ''));
// A misspelt need would require nothing, and its tests would be skipped.
for (const name of REQUIRED)
  if (!NEEDS.some((need) => need === name))
    throw new Error(`REQUIRE names "${name}", which no test needs: use ${NEEDS.join(', ')}`);

/**
 * Returns the option `skip` of tests with a requirement: false where the machine meets it, otherwise the reason. Throws
 * where REQUIRE names the need, so that the file fails instead of being skipped.
 */
export function skipWithout(need: Need, has: boolean, reason: string): string | false {
  if (has) return false;
  if (REQUIRED.has(need)) throw new Error(`REQUIRE names "${need}", but: ${reason}`);
  return reason;
}

/** Options of a test or suite that needs something, from a reason to skip it; the reports name the reason. */
export function skipIf(reason: string | false): TestOptions {
  return reason === false ? {} : { skip: true, meta: { skipped: reason } };
}
