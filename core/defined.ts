/**
 * Returns the fields that are not undefined. A field that is absent is not one that is undefined: JSON has no undefined, and
 * comparisons of objects distinguish the two.
 */
export function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
