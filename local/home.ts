/** Folder of an embedded cluster: the places in it, and the process that runs it. */

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { embeddedKubeconfig } from '../core/embedded.ts';
import { KernelLock } from './kernel-lock.ts';
import { identify, isAlive, type ProcessIdentity, processTable } from './kubelet/processes.ts';
import { Presence } from './presence.ts';

/** Limit for the wait until the holder of the guard has written its identity, milliseconds. */
const GUARD_MS = 15_000;
const GUARD_LOOK_MS = 10;

const identity = z.object({ pid: z.number(), start: z.number(), bootId: z.string() });

const stateSchema = z.object({
  pid: z.number(),
  /** URL of the Kubernetes API. */
  url: z.string(),
  /** URL of the HTTP API. */
  apiUrl: z.string(),
  /** URL of the controller's metrics. */
  metricsUrl: z.string().optional(),
  /** Path of a file with a valid token for the HTTP API, which is replaced before it expires. */
  apiTokenFile: z.string().optional(),
  /** RFC 3339. */
  startedAt: z.string(),
});

/** Content of `state.json` while the cluster is ready. */
export type ClusterState = z.infer<typeof stateSchema>;

const portsSchema = z.object({
  /** Port of the Kubernetes API. */
  port: z.number(),
  /** Port of the HTTP API. */
  apiPort: z.number(),
});

/** Ports of the last cluster of the folder, on 127.0.0.1. */
export type Ports = z.infer<typeof portsSchema>;

/** The part of a kubeconfig that has the token. */
const tokenSchema = z.object({ users: z.tuple([z.object({ user: z.object({ token: z.string().min(1) }) })]) });

/** Error: another process runs a cluster in this folder. */
export class AlreadyRunning extends Error {
  readonly code = 'AlreadyRunning';
  constructor(home: string, pid?: number) {
    super(
      `an embedded cluster already runs in ${home}${pid === undefined ? '' : ` (process ${pid})`}: stop it with "berth local down", ` +
        'or set BERTH_HOME to another folder for a second one',
    );
  }
}

/** Error: the folder cannot be created. */
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

/**
 * Removes a file of this process. After the folder was replaced the file can belong to another process: then it stays.
 */
function removeOwn(path: string): void {
  if (readJson(path, z.object({ pid: z.literal(process.pid) }))) rmSync(path, { force: true });
}

export class Home {
  readonly path: string;
  #guard: KernelLock | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** Path of the kubeconfig for people and the CLI, with all rights. */
  get kubeconfig(): string {
    return embeddedKubeconfig(this.path);
  }

  /** Token of the kubeconfig, which the next cluster accepts too, so that a copied kubeconfig stays valid. */
  get token(): string | undefined {
    return readJson(this.kubeconfig, tokenSchema)?.users[0].user.token;
  }

  /** Path of the token for the HTTP API. */
  get apiToken(): string {
    return join(this.path, 'api-token');
  }

  /** Folder of the API server's data. */
  get cluster(): string {
    return join(this.path, 'cluster');
  }

  /** Path of the kubeconfig of one run of a program, with its service account. */
  programKubeconfig(program: string, run: string): string {
    return join(this.#programs, `${program}.${run}.kubeconfig`);
  }

  /** Removes the kubeconfigs, so that a late run of an earlier cluster's program finds none. */
  removeProgramKubeconfigs(): void {
    for (const name of readdirSync(this.#programs)) rmSync(join(this.#programs, name), { force: true });
  }

  log(program: string): string {
    return join(this.path, 'logs', `${program}.log`);
  }

  /** Folder of the compiled code of all programs, which saves every start the work of reading TypeScript. */
  get cache(): string {
    return join(this.path, 'cache');
  }

  get #programs(): string {
    return join(this.path, 'programs');
  }

  get #state(): string {
    return join(this.path, 'state.json');
  }

  get #ports(): string {
    return join(this.path, 'ports.json');
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

  /** Replaces a file as a whole, readable by the user only. */
  write(path: string, text: string): void {
    const temporary = `${path}.${process.pid}`;
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, path);
  }

  writeState(state: ClusterState): void {
    this.write(this.#state, `${JSON.stringify(state)}\n`);
  }

  /** Removes the state; must be called under the lock. */
  removeState(): void {
    rmSync(this.#state, { force: true });
  }

  removeOwnState(): void {
    removeOwn(this.#state);
  }

  /** Returns the state of the cluster that runs here and is ready; undefined without one. */
  state(): ClusterState | undefined {
    const state = readJson(this.#state, stateSchema);
    return state && this.runner()?.pid === state.pid ? state : undefined;
  }

  /** Returns the ports of the cluster that was ready here last; undefined without one. */
  ports(): Ports | undefined {
    return readJson(this.#ports, portsSchema);
  }

  writePorts(ports: Ports): void {
    this.write(this.#ports, `${JSON.stringify(ports)}\n`);
  }

  /** Returns the living process that runs a cluster here, ready or not. */
  runner(): ProcessIdentity | undefined {
    const holder = readJson(this.#lock, identity);
    return holder && isAlive(processTable, holder) ? holder : undefined;
  }

  /**
   * Makes this process the one that runs the cluster. Rejects with `AlreadyRunning`.
   *
   * The guard decides, and the kernel grants it to one process at a time, so no interleaving of starts gives two of
   * them the folder. The lock file only identifies that process. It is written and removed under the guard alone, so a
   * start never touches the lock file of another living process: there is no stale lock to judge and nothing to take
   * over.
   */
  async lock(): Promise<void> {
    await this.#takeGuard();
    this.write(this.#lock, JSON.stringify(identify(processTable, process.pid)));
  }

  unlock(): void {
    removeOwn(this.#lock);
    this.#releaseGuard();
  }

  /** Runs `fn` while no cluster runs here and none can start. Rejects with `AlreadyRunning`. */
  async exclusively(fn: () => Promise<void>): Promise<void> {
    await this.#takeGuard();
    try {
      await fn();
    } finally {
      this.#releaseGuard();
    }
  }

  /** Presence of a cluster in this folder, or of a process that it was about to start. */
  get presence(): Presence {
    return new Presence(join(this.path, 'presence'));
  }

  async #takeGuard(): Promise<void> {
    const deadline = performance.now() + GUARD_MS;
    for (;;) {
      const holder = this.runner();
      if (holder !== undefined) throw new AlreadyRunning(this.path, holder.pid);
      try {
        this.#guard = KernelLock.take(join(this.path, 'guard.sqlite'));
      } catch (error) {
        throw new HomeUnusable(this.path, error as Error);
      }
      if (this.#guard) return;
      // The holder will soon write its identity, or is ending processes of an earlier cluster.
      if (performance.now() > deadline) throw new AlreadyRunning(this.path);
      await sleep(GUARD_LOOK_MS);
    }
  }

  #releaseGuard(): void {
    this.#guard?.release();
    this.#guard = undefined;
  }
}
