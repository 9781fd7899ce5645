/** The folder that holds an embedded cluster: where things are in it, and who runs it. */

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { embeddedKubeconfig } from '../core/embedded.ts';
import { identify, isAlive, type ProcessIdentity, processTable } from './kubelet/processes.ts';

const identity = z.object({ pid: z.number(), start: z.number(), bootId: z.string() });

const stateSchema = z.object({
  pid: z.number(),
  /** Of the Kubernetes API. */
  url: z.string(),
  /** Of the HTTP API. */
  apiUrl: z.string(),
  /** Of what the controller tells Prometheus. */
  metricsUrl: z.string().optional(),
  /** RFC 3339. */
  startedAt: z.string(),
});

/** What `state.json` says while the cluster is ready. */
export type ClusterState = z.infer<typeof stateSchema>;

/** Another process runs a cluster in this folder. */
export class AlreadyRunning extends Error {
  readonly code = 'AlreadyRunning';
  readonly pid: number;
  constructor(home: string, pid: number) {
    super(
      `an embedded cluster already runs in ${home} (process ${pid}): stop it with "berth local down", ` +
        'or set BERTH_HOME to another folder for a second one',
    );
    this.pid = pid;
  }
}

/** The folder cannot be made. */
export class HomeUnusable extends Error {
  readonly code = 'HomeUnusable';
  constructor(home: string, cause: Error) {
    super(`${home} cannot hold the embedded cluster: ${cause.message}; set BERTH_HOME to another folder`, { cause });
  }
}

function readJson<T>(path: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return undefined;
  }
}

export class Home {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** For people and the CLI: all rights. */
  get kubeconfig(): string {
    return embeddedKubeconfig(this.path);
  }

  /** What the API server keeps. */
  get cluster(): string {
    return join(this.path, 'cluster');
  }

  /** Kubeconfig of one of the programs, with its service account. */
  programKubeconfig(program: string): string {
    return join(this.path, 'programs', `${program}.kubeconfig`);
  }

  log(program: string): string {
    return join(this.path, 'logs', `${program}.log`);
  }

  /** Compiled code of all programs: saves every start the work of reading TypeScript. */
  get cache(): string {
    return join(this.path, 'cache');
  }

  get #state(): string {
    return join(this.path, 'state.json');
  }

  get #lock(): string {
    return join(this.path, 'lock');
  }

  make(): void {
    try {
      for (const folder of ['', 'programs', 'logs']) {
        mkdirSync(join(this.path, folder), { recursive: true, mode: 0o700 });
      }
    } catch (error) {
      throw new HomeUnusable(this.path, error as Error);
    }
  }

  /** Replaces a file as a whole, readable by the user alone. */
  write(path: string, text: string): void {
    const temporary = `${path}.${process.pid}`;
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, path);
  }

  writeState(state: ClusterState): void {
    this.write(this.#state, `${JSON.stringify(state)}\n`);
  }

  removeState(): void {
    rmSync(this.#state, { force: true });
  }

  /** The state of the cluster that runs here and is ready, if one does. */
  state(): ClusterState | undefined {
    const state = readJson(this.#state, stateSchema);
    return state && this.runner()?.pid === state.pid ? state : undefined;
  }

  /** The process that runs a cluster here, ready or not, if it lives. */
  runner(): ProcessIdentity | undefined {
    const holder = readJson(this.#lock, identity);
    return holder && isAlive(processTable, holder) ? holder : undefined;
  }

  /** Makes this process the one that runs the cluster. Throws `AlreadyRunning`. */
  lock(): void {
    const own = identify(processTable, process.pid);
    const temporary = `${this.#lock}.${process.pid}`;
    writeFileSync(temporary, JSON.stringify(own), { mode: 0o600 });
    try {
      for (;;) {
        try {
          // Atomic, and the lock is never seen half written.
          linkSync(temporary, this.#lock);
          return;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        }
        const holder = this.runner();
        if (holder !== undefined) throw new AlreadyRunning(this.path, holder.pid);
        this.#removeStale();
      }
    } finally {
      rmSync(temporary, { force: true });
    }
  }

  unlock(): void {
    rmSync(this.#lock, { force: true });
  }

  /** Moves the lock of a dead process away. If another one took it over meanwhile, that one's is put back. */
  #removeStale(): void {
    const aside = `${this.#lock}.stale.${process.pid}`;
    try {
      renameSync(this.#lock, aside);
    } catch {
      return;
    }
    const moved = readJson(aside, identity);
    try {
      if (moved && isAlive(processTable, moved)) linkSync(aside, this.#lock);
    } finally {
      rmSync(aside, { force: true });
    }
  }
}
