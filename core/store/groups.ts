export const AT_ONCE = 4;

/**
 * Returns the results of `run` for every item, in order. A few run at a time, because parts are large and the server is
 * shared.
 */
export async function inGroups<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map(run))));
  }
  return results;
}
