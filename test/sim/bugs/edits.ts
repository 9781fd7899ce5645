import type { Bug } from './bug.ts';

/** Files with the edits of a bug, and a sentence for each edit that does not fit. */
export interface Edited {
  /** Text by path. */
  files: ReadonlyMap<string, string>;
  misfits: readonly string[];
}

/** Makes a bug's edits one after the other, so that a later one can edit what an earlier one has left. `read` returns a file's text. */
export function edit(bug: Pick<Bug, 'name' | 'edits'>, read: (file: string) => string): Edited {
  const files = new Map<string, string>();
  const misfits: string[] = [];
  for (const { file, find, replace } of bug.edits) {
    const text = files.get(file) ?? read(file);
    const times = text.split(find).length - 1;
    if (times === 1)
      files.set(
        file,
        text.replace(find, () => replace),
      );
    else misfits.push(`"${bug.name}": what is to be replaced occurs ${times} times in ${file}: ${find}`);
  }
  return { files, misfits };
}
