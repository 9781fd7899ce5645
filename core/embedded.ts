import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

/**
 * Facts about the embedded cluster for programs that are not part of it: the place of its files and its version suffix.
 */

/** Suffix of the version that the embedded API server reports. A client recognizes an embedded cluster by it. */
export const EMBEDDED_VERSION_SUFFIX = '+berth-embedded';

/** `$BERTH_HOME`, or `berth` in the user's data folder; always absolute. */
export function homeFolder(env: NodeJS.ProcessEnv): string {
  if (env.BERTH_HOME) return resolve(env.BERTH_HOME);
  // The XDG specification says that a relative path is ignored.
  const data = env.XDG_DATA_HOME && isAbsolute(env.XDG_DATA_HOME) ? env.XDG_DATA_HOME : undefined;
  return join(data ?? join(homedir(), '.local', 'share'), 'berth');
}

/** Path of the embedded cluster's kubeconfig in this folder; it gives all rights. */
export function embeddedKubeconfig(home: string): string {
  return join(home, 'kubeconfig');
}

/**
 * Reports whether an embedded cluster is ready in this folder: its state file exists and the process that it names
 * lives.
 */
export function embeddedIsRunning(home: string): boolean {
  try {
    const { pid } = JSON.parse(readFileSync(join(home, 'state.json'), 'utf8')) as { pid: unknown };
    return typeof pid === 'number' && pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}
