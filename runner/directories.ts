import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Where a session's files are. In a pod the root is read-only: `/berth` and `/tmp` are volumes. */
export interface Directories {
  home: string;
  /** BERTH_STATE_DIR: what is stored. */
  state: string;
  /** The working directory, unless the agent names its own. */
  work: string;
  tmp: string;
  /** The runner's own files for a turn, each removed when it ends. */
  run: string;
}

/** `localRoot` holds all of them where several runners share one machine's file system. */
export function directoriesUnder(localRoot: string | undefined): Directories {
  const root = localRoot ?? '/berth';
  return {
    home: join(root, 'home'),
    state: join(root, 'state'),
    work: join(root, 'work'),
    tmp: localRoot ? join(localRoot, 'tmp') : '/tmp',
    run: join(root, 'run'),
  };
}

/** Throws what the file system says when one cannot be made. What an earlier process left in `run` is removed. */
export function makeDirectories(directories: Directories): void {
  rmSync(directories.run, { recursive: true, force: true });
  for (const path of Object.values(directories)) mkdirSync(path, { recursive: true });
  chmodSync(directories.run, 0o700);
}
