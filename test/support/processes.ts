import { readdirSync, readFileSync } from 'node:fs';

/** Returns the pids of processes whose environment contains this text. */
export function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(text);
      } catch {
        return false;
      }
    })
    .map(Number);
}

export function exists(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Reports whether the process waits for an event that only other processes can cause. */
export function isAsleep(pid: number): boolean {
  return /^State:\s+S/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

/** Highest memory use of the process, bytes. */
export function peakMemory(pid: number): number {
  return 1024 * Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
