/** Calls that a measurement makes at once where it makes many. */
export const AT_ONCE = 20;

/** Calls `work` with 0 to `times` - 1, `AT_ONCE` calls at a time. Resolves with what they came to, in the order of their ends. */
export async function someAtOnce<T>(times: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const one = async () => {
    while (next < times) results.push(await work(next++));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return results;
}
