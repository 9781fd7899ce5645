import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { errorCode, TurnFailure } from '../errors.ts';

/** The path of a program, found as a shell would find it. Throws a TurnFailure that says where it was looked for. */
export function findProgram(name: string, path: string, cwd: string): string {
  const places = name.includes('/')
    ? [isAbsolute(name) ? name : resolve(cwd, name)]
    : path.split(':').map((folder) => join(resolve(cwd, folder || '.'), name));
  let found: string | undefined;
  for (const place of places) {
    if (!isFile(place)) continue;
    if (isExecutable(place)) return place;
    found ??= place;
  }
  if (found) {
    throw new TurnFailure('CommandNotExecutable', `agent.command: ${found} is not executable; chmod +x makes it so`);
  }
  const directory = places.find((place) => isDirectory(place));
  if (directory && name.includes('/')) {
    throw new TurnFailure('CommandNotExecutable', `agent.command: ${directory} is a directory`);
  }
  const where = name.includes('/') ? `${places[0]} does not exist` : `"${name}" is in no folder of PATH (${path})`;
  throw new TurnFailure('CommandNotFound', `agent.command: ${where}`);
}

/** Throws a TurnFailure unless the path is a directory that can be entered. */
export function checkWorkingDirectory(path: string): void {
  const fail = (problem: string) => new TurnFailure('WorkingDirInvalid', `agent.workingDir: ${path} ${problem}`);
  try {
    if (!statSync(path).isDirectory()) throw fail('is not a directory');
    accessSync(path, constants.X_OK);
  } catch (error) {
    if (error instanceof TurnFailure) throw error;
    const code = errorCode(error);
    if (code === 'ENOENT') throw fail('does not exist');
    if (code === 'ENOTDIR') throw fail('lies below something that is not a directory');
    throw fail(`cannot be entered (${code})`);
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
