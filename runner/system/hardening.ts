import { statSync } from 'node:fs';
import type { Containment } from '../process/contained.ts';
import type { Addon } from '../signals/addon.ts';

/**
 * Closes what only PID 1 can close to its agent; any other process can be killed by it. Returns whether this process is as
 * well protected as it can be by itself. Called before the runner handles signals.
 */
export function protect(containment: Containment, addon: Addon | undefined): boolean {
  if (process.pid !== 1) return true;
  if (containment !== 'Keeper' || !addon) return false;
  // Children inherit ignored signals, and the keeper resets them for its agent.
  addon.ignoreSignals();
  return true;
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
