/** Calls that a measurement makes at once where it makes many. */
export const AT_ONCE = 20;

/**
 * Calls `work` with 0 to `times` - 1, `atOnce` calls at a time. Resolves with what they came to, in the order of their ends. After a
 * call that fails none begins, and the first failure is thrown once those under way have ended: nothing of them comes later.
 */
export async function someAtOnce<T>(
  times: number,
  work: (index: number) => Promise<T>,
  atOnce = AT_ONCE,
): Promise<T[]> {
  const results: T[] = [];
  const failures: unknown[] = [];
  let next = 0;
  const one = async () => {
    while (next < times && failures.length === 0) results.push(await work(next++));
  };
  await Promise.all(Array.from({ length: atOnce }, () => one().catch((error) => failures.push(error))));
  if (failures.length > 0) throw failures[0];
  return results;
}
