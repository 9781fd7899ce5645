/**
 * The machine's process table, and how a container's processes are found in it.
 *
 * There is no cgroup to ask, so a process belongs to a container when any of these holds: its environment carries the
 * container's marker, it is in a session that one of the container's processes leads, or its parent belongs. What
 * cleared its environment, began a session of its own and lost its parent, all before anybody looked, is not found.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { platform } from 'node:process';
import { psTable } from './ps.ts';

export interface ProcessInfo {
  pid: number;
  ppid: number;
  /** The session's id: the pid of the process that began it. */
  sid: number;
  /** When it began, in units that only compare within one boot of the machine. */
  start: number;
}

export interface ProcessTable {
  /** Every process that is not a zombie. */
  list(): ProcessInfo[];
  /** One process, or undefined when there is none of that pid (or only a zombie). */
  find(pid: number): ProcessInfo | undefined;
  /** The environment it was started with; undefined when it may not be read. */
  environment(pid: number): Map<string, string> | undefined;
  /** Differs after every boot of the machine, so that pids and starts recorded before it mean nothing. */
  bootId(): string;
}

/** What identifies one process for good: a pid alone is given again. */
export interface ProcessIdentity {
  pid: number;
  start: number;
  bootId: string;
}

function readOrUndefined(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
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

/** The table of Linux, read from /proc. */
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
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    return { pid, ppid: Number(fields[1]), sid: Number(fields[3]), start: Number(fields[19]) };
  },
  environment(pid) {
    const text = readOrUndefined(`/proc/${pid}/environ`);
    return text === undefined ? undefined : parseEnvironment(text);
  },
  bootId: () => (readOrUndefined('/proc/sys/kernel/random/boot_id') ?? '').trim(),
};

/** The table of this machine. */
export const processTable: ProcessTable = platform === 'linux' ? procTable : psTable;

export function identify(table: ProcessTable, pid: number): ProcessIdentity | undefined {
  const info = table.find(pid);
  return info && { pid, start: info.start, bootId: table.bootId() };
}

/** Whether exactly that process still runs. */
export function isAlive(table: ProcessTable, identity: ProcessIdentity): boolean {
  return identity.bootId === table.bootId() && table.find(identity.pid)?.start === identity.start;
}

export interface Belonging {
  /** First processes of the containers in question (session leaders), alive or not. */
  leaders: ProcessIdentity[];
  /** Judges a process by the environment it was started with. */
  marked: (environment: Map<string, string>) => boolean;
}

/** The pids that belong to the containers described, parents before their children where both are known. */
export function findBelonging(table: ProcessTable, { leaders, marked }: Belonging): number[] {
  const bootId = table.bootId();
  const current = leaders.filter((leader) => leader.bootId === bootId);
  const processes = table.list();
  const byPid = new Map(processes.map((info) => [info.pid, info]));
  // A leader's pid can be another process by now; while members of the session live it is not given again.
  const sessions = new Set(
    current.filter(({ pid, start }) => (byPid.get(pid)?.start ?? start) === start).map((leader) => leader.pid),
  );
  const own = new Set<number>([process.pid, process.ppid]);
  const found = new Set<number>();
  const pending = processes.filter((info) => !own.has(info.pid));
  for (const info of pending) {
    const environment = sessions.has(info.sid) ? undefined : table.environment(info.pid);
    if (sessions.has(info.sid) || (environment && marked(environment))) found.add(info.pid);
  }
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const info of pending) {
      if (found.has(info.pid)) {
        if (info.sid === info.pid) sessions.add(info.sid);
      } else if (found.has(info.ppid) || sessions.has(info.sid)) found.add(info.pid);
    }
  }
  return [...found];
}

/** Sends a signal; a process that is gone already is no error. A negative pid is a process group. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/**
 * Kills everything that belongs, looking again until nothing is left: a fork may slip past one look.
 * Returns the pids that still ran after `timeoutMs` (a process stuck in the kernel).
 */
export async function killBelonging(table: ProcessTable, belonging: Belonging, timeoutMs = 5_000): Promise<number[]> {
  const deadline = performance.now() + timeoutMs;
  for (let wait = 2; ; wait = Math.min(wait * 2, 100)) {
    const pids = findBelonging(table, belonging);
    if (pids.length === 0 || performance.now() > deadline) return pids;
    for (const pid of pids) sendSignal(pid, 'SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
