import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Limits } from '../../core/frames/messages.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Containment, StartProcess } from './contained.ts';
import { groupStart } from './group.ts';
import { keeperStart } from './keeper.ts';
import { isExecutable } from './program.ts';

/**
 * Returns the keeper if there is one: at `configured`, beside the runner's own file, or where `make keeper` puts it in
 * a checkout. `none` selects process groups; any other path that cannot be executed is an error, not a reason for
 * process groups.
 */
export function findContainment(
  configured: string | undefined,
  runnerDir: string,
  clock: Clock,
): { containment: Containment; start: (limits: Limits) => StartProcess } {
  const group = { containment: 'ProcessGroup' as const, start: (limits: Limits) => groupStart(clock, limits) };
  if (configured === 'none') return group;
  if (configured && !isExecutable(configured)) {
    throw new Error(`BERTH_KEEPER names ${configured}, which cannot be executed`);
  }
  const places = configured ? [configured] : [join(runnerDir, 'keeper'), join(runnerDir, '..', 'build', 'keeper')];
  const keeper = process.platform === 'linux' ? places.find(isExecutable) : undefined;
  return keeper ? { containment: 'Keeper', start: (limits) => keeperStart(keeper, clock, limits) } : group;
}

/**
 * Finds the folder of `berth-agent`, for the end of the agent's PATH: beside the runner's own file, or in a checkout.
 */
export function findTools(runnerDir: string): string[] {
  const folders = [join(runnerDir, 'bin'), join(runnerDir, '..', 'build', 'bin')];
  return folders.filter((folder) => existsSync(join(folder, 'berth-agent'))).slice(0, 1);
}
