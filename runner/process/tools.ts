import { existsSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Finds the folder of `berth-agent`, for the end of the agent's PATH: beside the runner's own file, or in a checkout.
 */
export function findTools(runnerDir: string): string[] {
  const folders = [join(runnerDir, 'bin'), join(runnerDir, '..', 'build', 'bin')];
  return folders.filter((folder) => existsSync(join(folder, 'berth-agent'))).slice(0, 1);
}
