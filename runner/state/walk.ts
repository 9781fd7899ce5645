import { lstatSync, opendirSync, readlinkSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { clip } from '../../core/resources/limits.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { MAX_ENTRIES } from './limits.ts';

/** Of a path in an error message. */
const MAX_PATH_BYTES = 512;

export interface Entry {
  /** Path within the directory, with `/`. */
  name: string;
  path: string;
  type: 'file' | 'directory' | 'symlink' | 'other';
  stats: Stats;
  /** Of a symlink. */
  target?: string;
}

/**
 * Everything below a directory, parents first, in the order of the names' bytes whatever the file system's own. Links
 * are not followed; what vanishes meanwhile is left out. Throws a TurnFailure for what cannot be stored as it is.
 */
export function* walk(directory: string, prefix = '', room = { names: MAX_ENTRIES }): Generator<Entry> {
  for (const bytes of namesIn(directory, room)) {
    const name = prefix + utf8(bytes, `the name of ${JSON.stringify(prefix + bytes.toString('utf8'))}`);
    const path = join(directory, bytes.toString('utf8'));
    const stats = ifThere(() => lstatSync(path));
    if (!stats) continue;
    if (stats.isDirectory()) {
      yield { name, path, type: 'directory', stats };
      yield* walk(path, `${name}/`, room);
    } else if (stats.isSymbolicLink()) {
      const target = ifThere(() => readlinkSync(path, { encoding: 'buffer' }));
      if (target) {
        yield { name, path, type: 'symlink', stats, target: utf8(target, `the target of ${JSON.stringify(name)}`) };
      }
    } else {
      yield { name, path, type: stats.isFile() ? 'file' : 'other', stats };
    }
  }
}

/** One after the other: a directory can hold more names than memory. */
function namesIn(directory: string, room: { names: number }): Buffer[] {
  const options = { encoding: 'buffer' as BufferEncoding, bufferSize: 1024 };
  const folder = ifThere(() => opendirSync(directory, options));
  if (!folder) return [];
  const names: Buffer[] = [];
  try {
    for (let entry = folder.readSync(); entry; entry = folder.readSync()) {
      room.names -= 1;
      if (room.names < 0) {
        const message = `the state in BERTH_STATE_DIR has more than ${MAX_ENTRIES} files, directories and links; no more can be stored`;
        throw new TurnFailure('StateTooLarge', message);
      }
      names.push(entry.name as unknown as Buffer);
    }
  } finally {
    folder.closeSync();
  }
  return names.sort(Buffer.compare);
}

function utf8(bytes: Buffer, what: string): string {
  const text = bytes.toString('utf8');
  if (Buffer.from(text).equals(bytes)) return text;
  throw new TurnFailure('StateNotStored', `BERTH_STATE_DIR: ${what} is not UTF-8`);
}

/** undefined when the file system says that it is not there (any more). */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new TurnFailure(
      'StateNotStored',
      `BERTH_STATE_DIR: ${clip(path ?? '', MAX_PATH_BYTES)} cannot be read (${code})`,
    );
  }
}
