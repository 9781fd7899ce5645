/** Returns the bugs that have `part` in their names, all where it is empty. Throws where no name has it. */
export function named<B extends { name: string }>(bugs: readonly B[], part = ''): B[] {
  const found = bugs.filter(({ name }) => name.includes(part));
  if (found.length === 0) throw new Error(`no planted bug has "${part}" in its name`);
  return found;
}
