import { closeSync, constants, openSync, readSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { isExecutable } from '../process/program.ts';
import type { IsProgram } from './rewrite.ts';

/**
 * What is a program for a shell that starts in `cwd` with this PATH. A script without `#!` is none: bash runs it itself.
 * Neither is a script that is named by a relative path: `exec` would give it the full one as `$0`.
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

/** The first four bytes. A program that may be executed but not read is taken for none. */
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
