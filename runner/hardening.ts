import { statSync } from 'node:fs';

/**
 * Reports whether a process of the same uid can neither read this process's memory, environment and descriptors nor
 * switch on its inspector. The kernel gives these files to root if the program is unreadable for its user, or if the
 * process is not dumpable. Nothing is closed to root.
 */
export function isHardened(): boolean {
  const uid = process.getuid?.();
  if (process.platform !== 'linux' || uid === undefined || uid === 0) return false;
  return statSync('/proc/self/mem').uid !== uid && process.execArgv.includes('--disable-sigusr1');
}
