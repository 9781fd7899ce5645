import { closeSync, constants, openSync, readSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { isExecutable } from '../process/program.ts';

/**
 * Reports whether bash, started in the folder and with the PATH of the command, would find a program of this name and
 * start it with this very path. This does not hold for certain after the text has run for a while.
 */
export type IsProgram = (name: string) => boolean;

/**
 * Returns a test for programs of a shell that starts in `cwd` with this PATH. A script without `#!` does not count,
 * because bash runs it itself. A script with a relative path does not count either: `exec` would give it the full path
 * as `$0`.
 */
export function programsOn(path: string, cwd: string): IsProgram {
  return (name) => {
    if (name.includes('/')) return isStartable(resolve(cwd, name), isAbsolute(name));
    for (const folder of path.split(':')) {
      if (!isAbsolute(folder)) return false;
      const place = join(folder, name);
      if (isExecutable(place)) return isStartable(place, true);
    }
    return false;
  };
}

function isStartable(path: string, asScript: boolean): boolean {
  if (!isExecutable(path)) return false;
  const start = beginningOf(path);
  return start === '\x7fELF' || (asScript && start.startsWith('#!'));
}

/**
 * Returns the first four bytes. A program that may be executed but not read gives an empty text, so it does not count.
 */
function beginningOf(path: string): string {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY);
    const bytes = Buffer.alloc(4);
    return bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, 0));
  } catch {
    return '';
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
