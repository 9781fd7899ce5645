/**
 * The machine's process table, and how a container's processes are found in it.
 *
 * There is no cgroup to ask, so a process belongs to a container when any of these holds: its environment carries the
 * container's marker, it is in a session that one of the container's processes leads, or its parent belongs. What
 * cleared its environment, began a session of its own and lost its parent, all before anybody looked, is not found.
 */

import { platform } from 'node:process';
import { procTable } from './proc.ts';
import type { ProcessTable } from './process-table.ts';
import { psTable } from './ps.ts';

/** What identifies one process for good: a pid alone is given again. */
export interface ProcessIdentity {
  pid: number;
  start: number;
  bootId: string;
}

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
 * Returns the pids that still ran after `timeoutMs` of waiting (a process stuck in the kernel): a pause of this process is none.
 */
export async function killBelonging(table: ProcessTable, belonging: Belonging, timeoutMs = 5_000): Promise<number[]> {
  for (let wait = 2, waited = 0; ; wait = Math.min(wait * 2, 100)) {
    const pids = findBelonging(table, belonging);
    if (pids.length === 0 || waited > timeoutMs) return pids;
    for (const pid of pids) sendSignal(pid, 'SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, wait));
    waited += wait;
  }
}
