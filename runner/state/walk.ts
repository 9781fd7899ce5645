import { lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { TurnFailure } from '../errors.ts';

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
 * are not followed; what vanishes meanwhile is left out.
 */
export function* walk(directory: string, prefix = ''): Generator<Entry> {
  const names = ifThere(() => readdirSync(directory, { encoding: 'buffer' })) ?? [];
  for (const bytes of names.sort(Buffer.compare)) {
    const name = prefix + bytes.toString('utf8');
    const path = join(directory, bytes.toString('utf8'));
    if (!Buffer.from(bytes.toString('utf8')).equals(bytes)) {
      throw new TurnFailure('StateNotStored', `BERTH_STATE_DIR: the name of ${JSON.stringify(name)} is not UTF-8`);
    }
    const stats = ifThere(() => lstatSync(path));
    if (!stats) continue;
    if (stats.isDirectory()) {
      yield { name, path, type: 'directory', stats };
      yield* walk(path, `${name}/`);
    } else if (stats.isSymbolicLink()) {
      const target = ifThere(() => readlinkSync(path));
      if (target !== undefined) yield { name, path, type: 'symlink', stats, target };
    } else {
      yield { name, path, type: stats.isFile() ? 'file' : 'other', stats };
    }
  }
}

/** undefined when the file system says that it is not there (any more). */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new TurnFailure('StateNotStored', `BERTH_STATE_DIR: ${path} cannot be read (${code})`);
  }
}
