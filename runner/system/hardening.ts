import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Containment } from '../process/contained.ts';

/**
 * Ignores all signals that neither Node nor the runner handles, by the addon in `runner/signals`, beside the runner's own
 * file or where `make keeper` puts it in a checkout. Returns false where the addon cannot be loaded. Children inherit
 * ignored signals, and the keeper resets them for its agent.
 */
function ignoreSignals(runnerDir: string): boolean {
  const places = [join(runnerDir, 'signals.node'), join(runnerDir, '..', 'build', 'signals.node')];
  const addon = places.find((place) => existsSync(place));
  if (!addon) return false;
  try {
    process.dlopen({ exports: {} }, addon);
    return true;
  } catch {
    return false;
  }
}

/**
 * Closes what only PID 1 can close to its agent; any other process can be killed by it. Returns whether this process is as
 * well protected as it can be by itself. Called before the runner handles signals.
 */
export function protect(containment: Containment, runnerDir: string): boolean {
  if (process.pid !== 1) return true;
  return containment === 'Keeper' && ignoreSignals(runnerDir);
}

/**
 * Reports whether a process of the same uid can neither read this process's memory, environment and descriptors nor
 * switch on its inspector. The kernel gives these files to root if the program is unreadable for its user, or if the
 * process is not dumpable. Nothing is closed to root.
 */
export function isClosed(): boolean {
  const uid = process.getuid?.();
  if (process.platform !== 'linux' || uid === undefined || uid === 0) return false;
  return statSync('/proc/self/mem').uid !== uid && process.execArgv.includes('--disable-sigusr1');
}
