/**
 * The machine's process table, and the search for a container's processes in it.
 *
 * Processes have no cgroup here. A process belongs to a container when its environment has the container's marker. It also
 * belongs to it in a session that one of the container's processes leads, or when its parent belongs. A process that cleared
 * its environment, began a session of its own and lost its parent between two scans is not found.
 */

import { platform } from 'node:process';
import { procTable } from './proc.ts';
import type { ProcessTable } from './process-table.ts';
import { psTable } from './ps.ts';

/** Identity of a process for ever; a pid alone can be reused. */
export interface ProcessIdentity {
  pid: number;
  start: number;
  bootId: string;
}

/** Process table of this machine. */
export const processTable: ProcessTable = platform === 'linux' ? procTable : psTable;

export function identify(table: ProcessTable, pid: number): ProcessIdentity | undefined {
  const info = table.find(pid);
  return info && { pid, start: info.start, bootId: table.bootId() };
}

/** Reports whether exactly that process is still running. */
export function isAlive(table: ProcessTable, identity: ProcessIdentity): boolean {
  return identity.bootId === table.bootId() && table.find(identity.pid)?.start === identity.start;
}

export interface Belonging {
  /** First processes of the containers (session leaders), alive or not. */
  leaders: ProcessIdentity[];
  /** Tests the first environment of a process. */
  marked: (environment: Map<string, string>) => boolean;
}

/** Returns the pids that belong to the containers, parents before their children where both are known. */
export function findBelonging(table: ProcessTable, { leaders, marked }: Belonging): number[] {
  const bootId = table.bootId();
  const current = leaders.filter((leader) => leader.bootId === bootId);
  const processes = table.list();
  const byPid = new Map(processes.map((info) => [info.pid, info]));
  // A leader's pid may have passed to another process, but not while members of the session live.
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

/** Sends a signal, also to a process group by a negative pid. A process that is gone already is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/**
 * Kills every process that belongs, in repeated scans until none is left, because a fork may slip past one scan.
 * Returns the pids that still ran after `timeoutMs` of waiting (a process stuck in the kernel). A pause of this process
 * does not count as waiting.
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
