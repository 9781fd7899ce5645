import type { Limits } from '../../core/frames/messages.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import type { Exit } from '../process/exit.ts';

/** Reason why a family of processes was ended, in words for the person who sent the turn. */
export interface Overrun {
  code: Reason;
  message: string;
}

/** Usage of one family. */
export interface FamilyUsage {
  /** CPU time of all processes that ever lived in the family, microseconds. */
  cpuUs: number;
  /** Current memory, bytes. */
  memoryBytes: number;
  /** Highest memory seen, bytes. */
  peakBytes: number;
  /** Current number of processes. */
  processes: number;
  /** Highest number of processes seen at once. */
  mostProcesses: number;
}

/** Field of the class for each limit of the keeper. */
const FIELDS: Record<string, string> = {
  data: 'memory',
  cpu: 'cpuSeconds',
  fsize: 'fileSize',
  nproc: 'processes',
  nofile: 'openFiles',
  core: 'core',
};

/** Returns the field of the class behind a limit of the keeper. */
export function fieldOf(name: string): string {
  return `sandbox.limits.${FIELDS[name] ?? name}`;
}

/** Converts the keeper's report: `value` is in bytes, processes, or microseconds of CPU. */
export function overrunOf(name: string, value: number, limits: Limits): Overrun {
  if (name === 'processes') return tooManyProcesses(value, limits.processes ?? 0);
  if (name === 'cpu') return overCpu(limits);
  return overMemory(value, limits.memoryBytes ?? 0);
}

export function tooManyProcesses(count: number, most: number): Overrun {
  const message = `${count} processes ran at once; the limit is ${most} (${fieldOf('nproc')}); all of them were stopped`;
  return { code: 'TooManyProcesses', message };
}

/** Overrun of a keeper that cannot see its processes any more and so cannot limit them. */
export function outOfSight(code: string): Overrun {
  const message = `the keeper could not look at the agent's processes for two seconds (${code}) and ended; all of them were stopped: the node is short of open files or memory, or the agent took its keeper's away`;
  return { code: 'InternalError', message };
}

/** Overrun of the sandbox's memory limit. */
function overMemory(bytes: number, limit: number): Overrun {
  const message = `the processes used ${bytes} bytes of memory; the limit is ${limit} (${fieldOf('data')}); they were stopped`;
  return { code: 'MemoryLimit', message };
}

function overCpu({ cpuSeconds }: Limits): Overrun {
  return { code: 'CpuLimit', message: `more than ${cpuSeconds} s of CPU time were used (${fieldOf('cpu')})` };
}

/** Returns the limit at which the kernel ended a process, if its exit shows one. */
export function overrunAtEnd({ signal }: Exit, limits: Limits): Overrun | undefined {
  if (signal === 'SIGXCPU' && limits.cpuSeconds !== undefined) return overCpu(limits);
  if (signal === 'SIGXFSZ' && limits.fileSizeBytes !== undefined) {
    const message = `a file grew larger than ${limits.fileSizeBytes} bytes (${fieldOf('fsize')})`;
    return { code: 'FileSizeLimit', message };
  }
  return undefined;
}
