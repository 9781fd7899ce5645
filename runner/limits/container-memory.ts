import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Overrun } from './overrun.ts';
import type { MemoryNow, PodMemory } from './pod-memory.ts';

/** A limit above this means no limit: cgroup v1 writes the largest multiple of a page. */
const NO_LIMIT = 2 ** 60;

interface Files {
  usage: string;
  limit: string;
  stat: string;
  /** Key in `stat` of the memory that the kernel can reclaim. */
  reclaimable: string;
  events: string;
}

const V2: Files = {
  usage: 'memory.current',
  limit: 'memory.max',
  stat: 'memory.stat',
  reclaimable: 'inactive_file',
  events: 'memory.events',
};
const V1: Files = {
  usage: 'memory.usage_in_bytes',
  limit: 'memory.limit_in_bytes',
  stat: 'memory.stat',
  reclaimable: 'total_inactive_file',
  events: 'memory.oom_control',
};

/**
 * Memory of the runner's own container, from the files of its cgroup, version 1 or 2. Memory that the kernel can
 * reclaim does not count.
 */
export class ContainerMemory implements PodMemory {
  readonly #folder: string;
  readonly #files: Files;

  private constructor(folder: string, files: Files) {
    this.#folder = folder;
    this.#files = files;
  }

  /** Finds the cgroup below `root`, where a container sees its own; undefined without a cgroup or a limit. */
  static find(root = '/sys/fs/cgroup'): ContainerMemory | undefined {
    for (const memory of [new ContainerMemory(root, V2), new ContainerMemory(join(root, 'memory'), V1)]) {
      if (memory.read()) return memory;
    }
    return undefined;
  }

  read(): MemoryNow | undefined {
    const limit = Number(this.#text(this.#files.limit));
    if (!(limit < NO_LIMIT)) return undefined;
    const used = Number(this.#text(this.#files.usage));
    const reclaimable = this.#number(this.#files.stat, this.#files.reclaimable) ?? 0;
    return Number.isFinite(used) ? { bytes: Math.max(0, used - reclaimable), limit } : undefined;
  }

  oomKills(): number | undefined {
    return this.#number(this.#files.events, 'oom_kill');
  }

  killedSince(oomKills: number | undefined): Overrun | undefined {
    const now = this.oomKills();
    if (now === undefined || oomKills === undefined || now <= oomKills) return undefined;
    const limit = this.read()?.limit;
    const words = limit === undefined ? 'its limit' : `its limit of ${limit} bytes`;
    const message = `the container reached ${words} of memory (resources.limits.memory) and the kernel killed a process of the agent`;
    return { code: 'OOMKilled', message };
  }

  #text(file: string): string | undefined {
    try {
      return readFileSync(join(this.#folder, file), 'utf8').trim();
    } catch {
      return undefined;
    }
  }

  /** Reads a line `key value` of a file. */
  #number(file: string, key: string): number | undefined {
    const line = this.#text(file)
      ?.split('\n')
      .find((text) => text.startsWith(`${key} `));
    return line === undefined ? undefined : Number(line.slice(key.length + 1));
  }
}
