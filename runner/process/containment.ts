import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../core/runtime.ts';
import type { Containment, StartProcess } from './contained.ts';
import { groupStart } from './group.ts';
import { keeperStart } from './keeper.ts';

/**
 * The keeper where there is one: at `configured`, beside the runner's own file, or where `make keeper` puts it in a
 * checkout. `none` does without; any other that cannot be executed is an error, not a reason to do without.
 */
export function findContainment(
  configured: string | undefined,
  runnerDir: string,
  clock: Clock,
): { containment: Containment; start: StartProcess } {
  if (configured === 'none') return { containment: 'ProcessGroup', start: groupStart(clock) };
  if (configured && !isExecutable(configured)) {
    throw new Error(`BERTH_KEEPER names ${configured}, which cannot be executed`);
  }
  const places = configured ? [configured] : [join(runnerDir, 'keeper'), join(runnerDir, '..', 'build', 'keeper')];
  const keeper = process.platform === 'linux' ? places.find(isExecutable) : undefined;
  return keeper
    ? { containment: 'Keeper', start: keeperStart(keeper, clock) }
    : { containment: 'ProcessGroup', start: groupStart(clock) };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
