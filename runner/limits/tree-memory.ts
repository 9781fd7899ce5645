import { readdirSync, readFileSync } from 'node:fs';
import { type MemoryNow, overrunOfPod, type PodMemory } from './pod-memory.ts';

/** Share of the time that readings may take: one part in so many. */
const COST_PARTS = 20;

/**
 * Memory of this process and all its descendants, for a runner that shares its cgroup with others. Pages of files do
 * not count, as the kernel can reclaim them.
 */
export class TreeMemory implements PodMemory {
  readonly #limit: number;

  private constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns undefined without a limit, and where the system does not list the children of a process. */
  static within(limit: string | undefined): TreeMemory | undefined {
    const listsChildren = text(`/proc/self/task/${process.pid}/children`) !== undefined;
    return limit !== undefined && listsChildren ? new TreeMemory(Number(limit)) : undefined;
  }

  read(): MemoryNow {
    const before = process.threadCpuUsage();
    const processes = processesFrom(process.pid);
    let now = { bytes: sum(processes, resident), limit: this.#limit };
    // Pages that processes share were counted for each. Their parts are read only when it matters: the kernel walks the
    // page tables for them.
    if (overrunOfPod(now)) now = { ...now, bytes: sum(processes, proportional) };
    const { user, system } = process.threadCpuUsage(before);
    return { ...now, restMs: ((user + system) / 1000) * COST_PARTS };
  }
}

/** Threads of a process, its main thread first. */
type Threads = string[];

/** Returns the process and its descendants. One that starts or ends meanwhile can be missing. */
function processesFrom(root: number): Threads[] {
  const found: Threads[] = [];
  // The loop also visits the pids that it adds.
  const pids = new Set([String(root)]);
  for (const pid of pids) {
    const threads = list(`/proc/${pid}/task`);
    found.push(threads);
    for (const thread of threads) {
      const children = text(`/proc/${pid}/task/${thread}/children`) ?? '';
      for (const child of children.split(' ')) if (child) pids.add(child);
    }
  }
  return found;
}

function sum(processes: readonly Threads[], memory: (threads: Threads) => number): number {
  return processes.reduce((total, threads) => total + memory(threads), 0);
}

/** Memory in bytes with all pages that are shared with other processes. */
function resident(threads: Threads): number {
  return ofFirst(threads, 'status', /^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm) ?? 0;
}

/** Memory in bytes with a proportional part of shared pages; with all of them for a program whose maps may not be read. */
function proportional(threads: Threads): number {
  return ofFirst(threads, 'smaps_rollup', /^Pss_(?:Anon|Shmem):\s+(\d+) kB$/gm) ?? resident(threads);
}

/** Adds the lines of the first thread that has them: a main thread that has ended has no memory. */
function ofFirst(threads: Threads, file: string, line: RegExp): number | undefined {
  for (const thread of threads) {
    const found = [...(text(`/proc/${thread}/${file}`) ?? '').matchAll(line)];
    if (found.length > 0) return found.reduce((total, [, amount]) => total + Number(amount) * 1024, 0);
  }
  return undefined;
}

function text(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
