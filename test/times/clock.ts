import { readFileSync } from 'node:fs';
import type { FileTimes, Wait } from './report.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** What a test file used and waited for, as its worker saw it. */
    times?: Pick<FileTimes, 'cpuMs' | 'waits'>;
  }
}

/** Milliseconds of a clock tick of /proc: Linux shows times to every program with 100 ticks a second. */
const TICK_MS = 10;
/** Waits of a file that are reported, the longest ones. */
const REPORTED_WAITS = 3;

/** Waits since the last `endOfFile`, by what was waited for. */
const waited = new Map<string, number>();
let usedBefore = 0;

/** Counts a wait that has ended. Waits that run side by side all count in full. */
export function countWait(what: string, ms: number): void {
  const kind = withoutNames(what);
  waited.set(kind, (waited.get(kind) ?? 0) + ms);
}

/**
 * Returns what this process used and waited for since the call before, or since its start. CPU is that of the process and of the
 * children that have ended: a program that still runs, or whose parent did not wait for it, is not in it.
 */
export function endOfFile(): Pick<FileTimes, 'cpuMs' | 'waits'> {
  const used = ownCpuMs() + childrenCpuMs();
  const cpuMs = Math.round(used - usedBefore);
  usedBefore = used;
  const waits: Wait[] = [...waited].map(([what, ms]) => ({ what, ms: Math.round(ms) }));
  waited.clear();
  return { cpuMs, waits: waits.sort((a, b) => b.ms - a.ms).slice(0, REPORTED_WAITS) };
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** CPU of the children that have ended and their own: fields 16 and 17 of proc_pid_stat(5). */
function childrenCpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // The second field is the program's name in parentheses, in which there may be spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
}

/** The kind of thing that is waited for: generated names and numbers would make each wait a kind of its own. */
function withoutNames(what: string): string {
  return what.replace(/\S*\d\S*/g, '…').slice(0, 80);
}
