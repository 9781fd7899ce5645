import { type BigIntStats, lstatSync, opendirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { clip } from '../../core/resources/limits.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { ifThere } from '../system/if-there.ts';
import { MAX_ENTRIES, MAX_PATH_BYTES } from './limits.ts';
import { NAMES_AS_BYTES, orderedNames } from './names.ts';
import { isUpload } from './uploads.ts';

/** Limit of a path in an error message, bytes. */
const SHOWN_BYTES = 512;

export interface Entry {
  /** Path within the directory, with `/`. */
  name: string;
  path: string;
  type: 'file' | 'directory' | 'symlink' | 'other';
  stats: BigIntStats;
  /** Target of a symlink. */
  target?: string;
}

/**
 * Yields everything below a directory but what is being written from outside, parents first, ordered by the bytes of the names on every file system. Links are
 * not followed; entries that vanish during the walk are left out. Throws a TurnFailure for an entry that cannot be stored as
 * it is.
 */
export function* walk(directory: string, prefix = '', room = { names: MAX_ENTRIES }): Generator<Entry> {
  for (const bytes of namesIn(directory, room)) {
    const name = prefix + utf8(bytes, `the name of ${JSON.stringify(prefix + bytes.toString('utf8'))}`);
    checkLength(name);
    if (isUpload(bytes.toString('utf8'))) continue;
    const path = join(directory, bytes.toString('utf8'));
    const stats = readIfThere(() => lstatSync(path, { bigint: true }));
    if (!stats) continue;
    if (stats.isDirectory()) {
      yield { name, path, type: 'directory', stats };
      yield* walk(path, `${name}/`, room);
    } else if (stats.isSymbolicLink()) {
      const target = readIfThere(() => readlinkSync(path, { encoding: 'buffer' }));
      if (target) {
        yield { name, path, type: 'symlink', stats, target: utf8(target, `the target of ${JSON.stringify(name)}`) };
      }
    } else {
      yield { name, path, type: stats.isFile() ? 'file' : 'other', stats };
    }
  }
}

function namesIn(directory: string, room: { names: number }): Buffer[] {
  const folder = readIfThere(() => opendirSync(directory, NAMES_AS_BYTES));
  if (!folder) return [];
  return orderedNames(folder, () => {
    room.names -= 1;
    if (room.names < 0) {
      const message = `the state in BERTH_STATE_DIR has more than ${MAX_ENTRIES} files, directories and links; no more can be stored`;
      throw new TurnFailure('StateTooLarge', message);
    }
  });
}

/** A path that is too long is refused in a short directory, too: that of the next incarnation may be longer. */
function checkLength(name: string): void {
  const length = Buffer.byteLength(name);
  if (length <= MAX_PATH_BYTES) return;
  const message = `BERTH_STATE_DIR: the path ${JSON.stringify(clip(name, SHOWN_BYTES))} has ${length} bytes; at most ${MAX_PATH_BYTES} can be stored`;
  throw new TurnFailure('StateNotStored', message);
}

function utf8(bytes: Buffer, what: string): string {
  const text = bytes.toString('utf8');
  if (Buffer.from(text).equals(bytes)) return text;
  throw new TurnFailure('StateNotStored', `BERTH_STATE_DIR: ${what} is not UTF-8`);
}

/** Like `ifThere`, but throws a TurnFailure for an entry that cannot be read. */
export function readIfThere<T>(look: () => T): T | undefined {
  try {
    return ifThere(look);
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    throw new TurnFailure(
      'StateNotStored',
      `BERTH_STATE_DIR: ${clip(path ?? '', SHOWN_BYTES)} cannot be read (${code})`,
    );
  }
}
