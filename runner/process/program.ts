import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { TurnFailure } from '../../core/result/failure.ts';
import { errorCode } from '../system/errors.ts';

/**
 * Returns the path of a program, found as a shell would find it. Throws a TurnFailure that lists the places searched;
 * `field` names the setting.
 */
export function findProgram(name: string, path: string, cwd: string, field = 'agent.command'): string {
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
    throw new TurnFailure('CommandNotExecutable', `${field}: ${found} is not executable; chmod +x makes it so`);
  }
  const directory = places.find((place) => isDirectory(place));
  if (directory && name.includes('/')) {
    throw new TurnFailure('CommandNotExecutable', `${field}: ${directory} is a directory`);
  }
  const where = name.includes('/') ? `${places[0]} does not exist` : `"${name}" is in no folder of PATH (${path})`;
  throw new TurnFailure('CommandNotFound', `${field}: ${where}`);
}

/** Throws a TurnFailure unless the path is a directory that can be entered. */
export function checkWorkingDirectory(path: string): void {
  const problem = directoryProblem(path);
  if (problem !== undefined) throw new TurnFailure('WorkingDirInvalid', `agent.workingDir: ${path} ${problem}`);
}

/** Returns the reason why the path is not a directory that can be entered; undefined when it is one. */
export function directoryProblem(path: string): string | undefined {
  try {
    if (!statSync(path).isDirectory()) return 'is not a directory';
    accessSync(path, constants.X_OK);
    return undefined;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT') return 'does not exist';
    if (code === 'ENOTDIR') return 'lies below something that is not a directory';
    return `cannot be entered (${code})`;
  }
}

function isFile(path: string): boolean {
  return kindOf(path)?.isFile() ?? false;
}

function isDirectory(path: string): boolean {
  return kindOf(path)?.isDirectory() ?? false;
}

/** Returns undefined for a path that cannot be read, like a shell: a folder of PATH can belong to another user. */
function kindOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Reports whether the path is a file that may be executed. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
