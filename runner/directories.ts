import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SECRETS_DIRECTORY } from '../core/resources/names.ts';

/** Where a session's files are. In a pod the root is read-only: `/berth` and `/tmp` are volumes. */
export interface Directories {
  /** BERTH_STATE_DIR: what is stored. */
  state: string;
  /** The working directory, unless the agent names its own. */
  work: string;
  /** Also HOME. */
  tmp: string;
  /** BERTH_SECRETS_DIR: files of Secrets, a volume of its own, there only when the agent has such files. */
  secrets: string;
  /** The runner's own files for a turn, each removed when it ends. */
  run: string;
}

/** `localRoot` holds all of them where several runners share one machine's file system. */
export function directoriesUnder(localRoot: string | undefined): Directories {
  const root = localRoot ?? '/berth';
  return {
    state: join(root, 'state'),
    work: join(root, 'work'),
    tmp: localRoot ? join(localRoot, 'tmp') : '/tmp',
    secrets: join(localRoot ?? '/', SECRETS_DIRECTORY),
    run: join(root, 'run'),
  };
}

/** The address of a unix socket is shorter than a path may be: 107 bytes and a NUL on Linux, 103 on macOS. */
const MAX_SOCKET_PATH = 103;

/** BERTH_SOCKET: in a folder that only this user can enter. */
export function socketPath({ run }: Directories): string {
  const path = join(run, 'berth.sock');
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return path;
  return join(tmpdir(), `berth-${createHash('sha256').update(run).digest('hex').slice(0, 16)}`, 'berth.sock');
}

/** Throws what the file system says when one cannot be made. What an earlier process left in `run` is removed. */
export function makeDirectories(directories: Directories): void {
  rmSync(directories.run, { recursive: true, force: true });
  const { state, work, tmp, run } = directories;
  for (const path of [state, work, tmp, run]) mkdirSync(path, { recursive: true });
  chmodSync(directories.run, 0o700);
  const sockets = dirname(socketPath(directories));
  if (sockets === directories.run) return;
  // In a folder that all may write to: what another user has put there cannot be removed, and ends the start.
  rmSync(sockets, { recursive: true, force: true });
  mkdirSync(sockets, { mode: 0o700 });
}

/** Makes those again that an agent has removed. What cannot be made is told by whoever needs it. */
export function remakeDirectories({ state, work, tmp }: Directories): void {
  for (const path of [state, work, tmp]) {
    try {
      mkdirSync(path, { recursive: true });
    } catch {
      // Something else stands in its place.
    }
  }
}

/** A path of the pod on this machine: the session's volume is below the local root too. */
export function located(path: string, mountPath: string | undefined, localRoot: string | undefined): string {
  const inside = mountPath !== undefined && (path === mountPath || path.startsWith(`${mountPath}/`));
  return inside && localRoot ? join(localRoot, path) : path;
}
