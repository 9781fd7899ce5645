/** Returns the first `count` items in order, without sorting all of them. */
export function smallest<T>(items: Iterable<T>, count: number, compare: (a: T, b: T) => number): T[] {
  const first: T[] = [];
  for (const item of items) {
    const last = first[count - 1];
    if (last !== undefined && compare(item, last) >= 0) continue;
    let index = first.length;
    while (index > 0 && compare(item, first[index - 1] as T) < 0) index--;
    first.splice(index, 0, item);
    if (first.length > count) first.pop();
  }
  return first;
}
