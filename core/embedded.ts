import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

/** What a program knows of the embedded cluster without being part of it: where its files are, how it names itself. */

/** Ends the version that the embedded API server reports, so that a client can tell it from any other. */
export const EMBEDDED_VERSION_SUFFIX = '+berth-embedded';

/** `$BERTH_HOME`, or `berth` in the user's data folder; always absolute. */
export function homeFolder(env: NodeJS.ProcessEnv): string {
  if (env.BERTH_HOME) return resolve(env.BERTH_HOME);
  // The XDG specification: a path that is not absolute is to be ignored.
  const data = env.XDG_DATA_HOME && isAbsolute(env.XDG_DATA_HOME) ? env.XDG_DATA_HOME : undefined;
  return join(data ?? join(homedir(), '.local', 'share'), 'berth');
}

/** The kubeconfig of the embedded cluster in this folder; it gives all rights. */
export function embeddedKubeconfig(home: string): string {
  return join(home, 'kubeconfig');
}

/** Whether an embedded cluster is ready in this folder: its state file is there and the process it names lives. */
export function embeddedIsRunning(home: string): boolean {
  try {
    const { pid } = JSON.parse(readFileSync(join(home, 'state.json'), 'utf8')) as { pid: unknown };
    return typeof pid === 'number' && pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}
