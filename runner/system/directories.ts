import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Bind } from '../../core/frames/messages.ts';
import { SECRETS_DIRECTORY } from '../../core/resources/names.ts';

/** Directories of a session. In a pod `/berth` and `/tmp` are volumes, or directories of the image. */
export interface Directories {
  /** BERTH_STATE_DIR: the directory that is stored. */
  state: string;
  /** BERTH_OUTPUT_DIR: files for whoever gave the turn, which exists only if the controller takes them. */
  output: string;
  /** BERTH_AGENT_DIR: the agent's files, which exists only if the agent has some. */
  agent: string;
  /** The Python environment, which exists only if the session has one. */
  environment: string;
  /** The working directory, unless the agent names its own. */
  work: string;
  /** Directory for temporary files, also HOME. */
  tmp: string;
  /** BERTH_SECRETS_DIR: files of Secrets, on a separate volume that exists only if the agent has such files. */
  secrets: string;
  /** Directory of the runner's own files for a turn, each removed when it ends. */
  run: string;
}

/** `localRoot` contains all directories where several runners share one machine's file system. */
export function directoriesUnder(localRoot: string | undefined): Directories {
  const root = localRoot ?? '/berth';
  return {
    state: join(root, 'state'),
    output: join(root, 'output'),
    agent: join(root, 'agent'),
    environment: join(root, 'environment'),
    work: join(root, 'work'),
    tmp: localRoot ? join(localRoot, 'tmp') : '/tmp',
    secrets: join(localRoot ?? '/', SECRETS_DIRECTORY),
    run: join(root, 'run'),
  };
}

/** Limit of the address of a unix socket, which is shorter than a path: 107 bytes and a NUL on Linux, 103 on macOS. */
const MAX_SOCKET_PATH = 103;

/** BERTH_SOCKET: in a folder that only this user can enter. */
export function socketPath({ run }: Directories): string {
  const path = join(run, 'berth.sock');
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return path;
  return join(tmpdir(), `berth-${createHash('sha256').update(run).digest('hex').slice(0, 16)}`, 'berth.sock');
}

/** BERTH_SOCKET of commands, whose requests belong to no turn: beside the agent's. */
export function commandSocketPath(directories: Directories): string {
  return join(dirname(socketPath(directories)), 'cmd.sock');
}

/**
 * Creates the directories and empties `run` of the files of an earlier process. Throws the file system's error when one
 * cannot be created.
 */
export function makeDirectories(directories: Directories): void {
  rmSync(directories.run, { recursive: true, force: true });
  const { state, work, tmp, run } = directories;
  for (const path of [state, work, tmp, run]) mkdirSync(path, { recursive: true });
  chmodSync(directories.run, 0o700);
  const sockets = dirname(socketPath(directories));
  if (sockets === directories.run) return;
  // The parent folder is writable for all users. Content of another user cannot be removed, and ends the start.
  rmSync(sockets, { recursive: true, force: true });
  mkdirSync(sockets, { mode: 0o700 });
}

/**
 * Creates the directories again that an agent has removed. Code that needs one reports that it could not be created.
 */
export function remakeDirectories({ state, work, tmp }: Directories): void {
  for (const path of [state, work, tmp]) {
    try {
      mkdirSync(path, { recursive: true });
    } catch {
      // The path is taken by something else.
    }
  }
}

/** Converts a path of the pod to this machine: the session's volume is below the local root too. */
export function located(path: string, mountPath: string | undefined, localRoot: string | undefined): string {
  const inside = mountPath !== undefined && (path === mountPath || path.startsWith(`${mountPath}/`));
  return inside && localRoot ? join(localRoot, path) : path;
}

/** Returns the working directory of an agent that names none of its own. */
export function workDirectory(
  { workspace, files }: Pick<Bind, 'workspace' | 'files'>,
  directories: Directories,
  localRoot: string | undefined,
): string {
  if (workspace) return located(workspace.mountPath, workspace.mountPath, localRoot);
  return files ? directories.agent : directories.work;
}
