/** Process table by `ps`, for machines without /proc (macOS). */

import { execFileSync } from 'node:child_process';
import type { ProcessInfo, ProcessTable } from './process-table.ts';

function ps(args: string[]): string {
  try {
    return execFileSync('ps', args, { encoding: 'latin1', env: { ...process.env, LC_ALL: 'C' }, maxBuffer: 64 << 20 });
  } catch (error) {
    // `ps -p` exits with 1 when there is no such process.
    return (error as { stdout?: string }).stdout ?? '';
  }
}

/** Columns of `ps`; the last one is five words in the C locale. */
const COLUMNS = 'pid=,ppid=,pgid=,stat=,lstart=';

function parse(text: string): ProcessInfo[] {
  const processes: ProcessInfo[] = [];
  for (const line of text.split('\n')) {
    const [pid, ppid, pgid, state, ...start] = line.trim().split(/\s+/);
    if (pid === undefined || state === undefined || state.startsWith('Z')) continue;
    // `sess` is an address on macOS; every container's first process leads a group of the same number as its session.
    processes.push({ pid: Number(pid), ppid: Number(ppid), sid: Number(pgid), start: Date.parse(start.join(' ')) });
  }
  return processes;
}

/** Environments of all processes, read together at the first request after a `list`, because `ps` is slow to start. */
let environments: Map<number, Map<string, string>> | undefined;

function readEnvironments(): Map<number, Map<string, string>> {
  const all = new Map<number, Map<string, string>>();
  for (const line of ps(['eww', '-A', '-o', 'pid=,command=']).split('\n')) {
    // The environment follows the command, separated by blanks: enough to find markers, whose values contain none.
    const [pid, ...words] = line.trim().split(/\s+/);
    const variables = new Map<string, string>();
    for (const word of words) {
      const equals = word.indexOf('=');
      if (equals > 0) variables.set(word.slice(0, equals), word.slice(equals + 1));
    }
    all.set(Number(pid), variables);
  }
  return all;
}

export const psTable: ProcessTable = {
  list() {
    environments = undefined;
    return parse(ps(['-A', '-o', COLUMNS]));
  },
  find: (pid) => parse(ps(['-p', String(pid), '-o', COLUMNS]))[0],
  environment(pid) {
    environments ??= readEnvironments();
    return environments.get(pid);
  },
  // ps does not say it; a scan takes longer than a program's loading.
  isLoading: () => false,
  // Start times are wall-clock here and differ between boots by themselves.
  bootId: () => 'wall-clock',
};
