import type { Limits } from '../../core/frames/messages.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import type { Exit } from '../process/exit.ts';

/** Why a family of processes was ended, in words for the person whose turn it was. */
export interface Overrun {
  code: Reason;
  message: string;
}

/** What one family uses. */
export interface FamilyUsage {
  /** Microseconds, of all that ever lived in it. */
  cpuUs: number;
  /** Bytes now. */
  memoryBytes: number;
  /** The most that was seen. */
  peakBytes: number;
  /** Now. */
  processes: number;
  /** The most that were seen at once. */
  mostProcesses: number;
}

/** What the keeper calls a limit, and what the class does. */
const FIELDS: Record<string, string> = {
  data: 'memory',
  cpu: 'cpuSeconds',
  fsize: 'fileSize',
  nproc: 'processes',
  nofile: 'openFiles',
  core: 'core',
};

/** The field of the class that a limit of the keeper stands for. */
export function fieldOf(name: string): string {
  return `sandbox.limits.${FIELDS[name] ?? name}`;
}

/** What the keeper found: `value` in bytes, processes, or microseconds of CPU. */
export function overrunOf(name: string, value: number, limits: Limits): Overrun {
  if (name === 'processes') return tooManyProcesses(value, limits.processes ?? 0);
  if (name === 'cpu') return overCpu(limits);
  return overMemory(value, limits.memoryBytes ?? 0);
}

export function tooManyProcesses(count: number, most: number): Overrun {
  const message = `${count} processes ran at once; the limit is ${most} (${fieldOf('nproc')}); all of them were stopped`;
  return { code: 'TooManyProcesses', message };
}

/** A keeper that cannot look at its processes cannot keep them. */
export function outOfSight(code: string): Overrun {
  const message = `the keeper could not look at the agent's processes for two seconds (${code}) and ended; all of them were stopped: the node is short of open files or memory, or the agent took its keeper's away`;
  return { code: 'InternalError', message };
}

/** Of the sandbox. */
function overMemory(bytes: number, limit: number): Overrun {
  const message = `the processes used ${bytes} bytes of memory; the limit is ${limit} (${fieldOf('data')}); they were stopped`;
  return { code: 'MemoryLimit', message };
}

function overCpu({ cpuSeconds }: Limits): Overrun {
  return { code: 'CpuLimit', message: `more than ${cpuSeconds} s of CPU time were used (${fieldOf('cpu')})` };
}

/** The limit at which the kernel ended a process, as far as its end tells. */
export function overrunAtEnd({ signal }: Exit, limits: Limits): Overrun | undefined {
  if (signal === 'SIGXCPU' && limits.cpuSeconds !== undefined) return overCpu(limits);
  if (signal === 'SIGXFSZ' && limits.fileSizeBytes !== undefined) {
    const message = `a file grew larger than ${limits.fileSizeBytes} bytes (${fieldOf('fsize')})`;
    return { code: 'FileSizeLimit', message };
  }
  return undefined;
}
