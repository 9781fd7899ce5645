import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import type { Cli } from '../cli.ts';
import { refused } from '../errors.ts';

/**
 * Returns the absolute path of a program as the caller's shell would find it: with a slash from the caller's directory,
 * else in the caller's PATH. Links are not resolved, because a virtual environment's python recognizes its environment
 * by its path.
 */
export function findProgram(program: string, { cwd, env }: Pick<Cli, 'cwd' | 'env'>): string {
  if (program.includes('/')) {
    const path = isAbsolute(program) ? program : resolve(cwd, program);
    const facts = stat(path);
    if (!facts) throw refused(`the program ${path} does not exist`);
    if (facts.isDirectory()) throw refused(`the program ${path} is a directory; name the program in it`);
    if (!isExecutable(path)) throw refused(notExecutable(path, program));
    return path;
  }
  const files = (env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(resolve(cwd, folder), program))
    .filter((path) => stat(path)?.isFile());
  const found = files.find(isExecutable);
  if (found) return found;
  if (files[0]) throw refused(notExecutable(files[0], program));
  const here = stat(resolve(cwd, program))?.isFile()
    ? `; for the one in this directory write ./${program}`
    : '; install it, or name it with its path';
  throw refused(`the program "${program}" is in no folder of PATH${here}`);
}

/** Returns the absolute path of a directory that agents can start in. */
export function findWorkingDirectory(directory: string, cwd: string): string {
  const path = resolve(cwd, directory);
  const facts = stat(path);
  if (!facts) throw refused(`--workdir: ${path} does not exist`);
  if (!facts.isDirectory()) throw refused(`--workdir: ${path} is not a directory`);
  return path;
}

function notExecutable(path: string, program: string): string {
  const interpreter = { py: 'python3', js: 'node', mjs: 'node', ts: 'node', sh: 'sh', rb: 'ruby' }[
    program.replace(/.*\./, '')
  ];
  const alternative = interpreter ? `, or run it with its interpreter: -- ${interpreter} ${program}` : '';
  return `the program ${path} is not executable; make it so with: chmod +x ${program}${alternative}`;
}

function stat(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined; // A parent is not a directory, or may not be read.
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
