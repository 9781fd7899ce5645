/** The process table of Linux, read from /proc. */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { ProcessInfo, ProcessTable } from './process-table.ts';

function readOrUndefined(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

/** Reads the environment from another thread, because a main thread that has ended has none. */
function threadsEnvironment(pid: number): string | undefined {
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const text = readOrUndefined(`/proc/${pid}/task/${thread}/environ`);
      if (text !== undefined) return text;
    }
  } catch {
    // The thread has ended.
  }
  return undefined;
}

/** Parses `environ`-style text: NAME=value pairs ended by NUL. */
function parseEnvironment(text: string): Map<string, string> {
  const variables = new Map<string, string>();
  for (const entry of text.split('\0')) {
    const equals = entry.indexOf('=');
    if (equals > 0) variables.set(entry.slice(0, equals), entry.slice(equals + 1));
  }
  return variables;
}

const PF_KTHREAD = 0x00200000;

/** Returns the fields of `stat` from the third on. */
function statFields(pid: number): string[] | undefined {
  const stat = readOrUndefined(`/proc/${pid}/stat`);
  // The second field is the program's name in parentheses and may itself contain blanks and parentheses.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function isOwn(pid: string): boolean {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === process.getuid?.();
}

export const procTable: ProcessTable = {
  list() {
    const processes: ProcessInfo[] = [];
    for (const entry of readdirSync('/proc')) {
      if (!/^\d+$/.test(entry)) continue;
      const info = this.find(Number(entry));
      if (info) processes.push(info);
    }
    return processes;
  },
  find(pid) {
    const fields = statFields(pid);
    if (fields === undefined) return undefined;
    // A zombie with more threads than its dead main thread is alive.
    if (fields[0] === 'X' || (fields[0] === 'Z' && Number(fields[17]) <= 1)) return undefined;
    return { pid, ppid: Number(fields[1]), sid: Number(fields[3]), start: Number(fields[19]) };
  },
  environment(pid) {
    const text = readOrUndefined(`/proc/${pid}/environ`) ?? threadsEnvironment(pid);
    return text === undefined ? undefined : parseEnvironment(text);
  },
  isLoading() {
    return readdirSync('/proc').some((entry) => {
      // Process 1 is no child of any process.
      if (!/^\d+$/.test(entry) || entry === '1') return false;
      const fields = statFields(Number(entry));
      if (!fields || fields[0] === 'X' || fields[0] === 'Z') return false;
      const isKernelThread = (Number(fields[6]) & PF_KTHREAD) !== 0;
      // The kernel sets the end of the environment last. It also shows 0 for processes that this user may not read.
      return !isKernelThread && fields[48] === '0' && isOwn(entry);
    });
  },
  bootId: () => (readOrUndefined('/proc/sys/kernel/random/boot_id') ?? '').trim(),
};
