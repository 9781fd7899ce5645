/** The process table of Linux, read from /proc. */

import { readdirSync, readFileSync } from 'node:fs';
import type { ProcessInfo, ProcessTable } from './process-table.ts';

function readOrUndefined(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

/** Where the main thread has ended the others still have it. */
function threadsEnvironment(pid: number): string | undefined {
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const text = readOrUndefined(`/proc/${pid}/task/${thread}/environ`);
      if (text !== undefined) return text;
    }
  } catch {
    // It has ended.
  }
  return undefined;
}

/** `environ`-style text: NAME=value pairs ended by NUL. */
function parseEnvironment(text: string): Map<string, string> {
  const variables = new Map<string, string>();
  for (const entry of text.split('\0')) {
    const equals = entry.indexOf('=');
    if (equals > 0) variables.set(entry.slice(0, equals), entry.slice(equals + 1));
  }
  return variables;
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
    const stat = readOrUndefined(`/proc/${pid}/stat`);
    if (stat === undefined) return undefined;
    // The second field is the program's name in parentheses and may itself hold blanks and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie with more threads than the dead main one lives.
    if (fields[0] === 'X' || (fields[0] === 'Z' && Number(fields[17]) <= 1)) return undefined;
    return { pid, ppid: Number(fields[1]), sid: Number(fields[3]), start: Number(fields[19]) };
  },
  environment(pid) {
    const text = readOrUndefined(`/proc/${pid}/environ`) ?? threadsEnvironment(pid);
    return text === undefined ? undefined : parseEnvironment(text);
  },
  bootId: () => (readOrUndefined('/proc/sys/kernel/random/boot_id') ?? '').trim(),
};
