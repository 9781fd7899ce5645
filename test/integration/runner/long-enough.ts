/** Milliseconds: the first are short, so that a test is; only a machine that is busy with other things needs the others. */
const LIMITS = [1_000, 5_000, 30_000];

/**
 * Resolves to the result of `attempt`, whose agent needs part of the limit to prepare. Repeats the attempt with a longer
 * limit until `isEnough` holds. The result with the longest limit counts in any case.
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
