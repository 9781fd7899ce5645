import type { Dir } from 'node:fs';

/** Options for opening a directory whose names may be no text. */
export const NAMES_AS_BYTES = { encoding: 'buffer' as BufferEncoding, bufferSize: 1024 };

/**
 * Returns the names in a directory that was opened with `NAMES_AS_BYTES`, ordered by their bytes, and closes it. The names
 * are read one by one, because a directory can hold more names than memory: `onName` is called for each and may throw.
 */
export function orderedNames(folder: Dir, onName: () => void): Buffer[] {
  const names: Buffer[] = [];
  try {
    for (let entry = folder.readSync(); entry; entry = folder.readSync()) {
      onName();
      names.push(entry.name as unknown as Buffer);
    }
  } finally {
    folder.closeSync();
  }
  return names.sort(Buffer.compare);
}
