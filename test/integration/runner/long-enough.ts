/** Milliseconds: the first are short, so that a test is; only a machine that is busy with other things needs the others. */
const LIMITS = [1_000, 5_000, 30_000];

/**
 * What `attempt` comes to within a limit that the agent needs for what it does before: attempted again with a longer one
 * until `isEnough` holds. What came of the longest counts in any case.
 */
export async function longEnough<T>(
  attempt: (limitMs: number) => Promise<T>,
  isEnough: (result: T) => boolean,
): Promise<T> {
  for (const limitMs of LIMITS.slice(0, -1)) {
    const result = await attempt(limitMs);
    if (isEnough(result)) return result;
  }
  return attempt(LIMITS.at(-1) as number);
}
