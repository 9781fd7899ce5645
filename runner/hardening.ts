import { statSync } from 'node:fs';

/**
 * Whether a process of the same uid can neither open this one's memory, environment and descriptors nor switch on its
 * inspector. The kernel gives the files of a process whose program its user cannot read (or that is not dumpable) to
 * root; to root nothing is closed.
 */
export function isHardened(): boolean {
  const uid = process.getuid?.();
  if (process.platform !== 'linux' || uid === undefined || uid === 0) return false;
  return statSync('/proc/self/mem').uid !== uid && process.execArgv.includes('--disable-sigusr1');
}
