/** A running embedded cluster: the API server and the kubelet in this process, the programs as its children. */

import { join } from 'node:path';
import { isNotFound } from '../core/kube/errors.ts';
import { leases } from '../core/kube/resources.ts';
import { NODE_FLAGS } from '../core/node-flags.ts';
import type { Clock, Logger, Random } from '../core/runtime.ts';
import { startApiServer } from './apiserver/server.ts';
import type { ApiServer } from './apiserver/types.ts';
import type { LocalConfig } from './config.ts';
import type { ClusterState, Home } from './home.ts';
import { repository } from './kubelet/images.ts';
import { Kubelet } from './kubelet/kubelet.ts';
import { LocalError, MARKER_HOME } from './leftovers.ts';
import { installManifests } from './manifests.ts';
import { freePort, Program, type ProgramSpec } from './program.ts';

/** The namespace of the service accounts of controller and API. */
const SYSTEM_NAMESPACE = 'berth-system';

/** How long pods get to end in good order when the cluster stops, milliseconds. */
const POD_GRACE_MS = 5_000;

/** The name under which the kubelet knows the runner of this repository. */
const RUNNER_IMAGE = 'berth.local/runner:local';
/** This machine's programs as an image: a container of it names its command. */
const MACHINE_IMAGE = 'berth.local/machine';
/** The controller's lease, by the name it has when nothing else is configured. */
const CONTROLLER_LEASE = 'berth-controller';

const REPOSITORY = join(import.meta.dirname, '..');

/** How Node runs a program of this repository. */
const NODE = [process.execPath, '--disable-warning=ExperimentalWarning'];

export interface ClusterDeps {
  clock: Clock;
  random: Random;
  logger: Logger;
}

export class Cluster {
  readonly #home: Home;
  readonly #config: LocalConfig;
  readonly #deps: ClusterDeps;
  readonly #kubelet: Kubelet;
  readonly #programs: Program[] = [];
  #server: ApiServer | undefined;
  #kubeletStarted = false;

  /** `home` is locked by the caller. */
  constructor(home: Home, config: LocalConfig, deps: ClusterDeps) {
    this.#home = home;
    this.#config = config;
    this.#deps = deps;
    this.#kubelet = new Kubelet({ home: home.path, images: this.#images(), ...deps });
  }

  /** Resolves when everything is ready; `signal` gives it up. After a rejection `stop` has to be called all the same. */
  async start(signal: AbortSignal): Promise<ClusterState> {
    const home = this.#home;
    signal.addEventListener('abort', () => this.#stopPrograms(), { once: true });
    const server = await startApiServer({
      ...this.#deps,
      dataDir: home.cluster,
      port: this.#config.port,
      tokens: [],
      pods: this.#kubelet.handlers,
    }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') throw error;
      throw new LocalError(`port ${this.#config.port} of 127.0.0.1 is taken by another program: name another, or none`);
    });
    this.#server = server;
    const admin = server.mintToken({ username: 'admin', groups: ['system:masters', 'system:authenticated'] });
    home.write(home.kubeconfig, `${JSON.stringify(server.kubeconfig(admin), null, 2)}\n`);
    const folders = [join(REPOSITORY, 'manifests'), join(REPOSITORY, 'manifests', 'embedded')];
    await Promise.all([this.#startKubelet(server), installManifests(server.store, folders)]);
    signal.throwIfAborted();
    const urls = await this.#startPrograms(server, signal);
    const startedAt = new Date(this.#deps.clock.now()).toISOString();
    return { pid: process.pid, url: server.url, ...urls, startedAt };
  }

  /** Stops the programs, then the pods, then the API. */
  async stop(): Promise<void> {
    await this.#stopPrograms();
    if (this.#kubeletStarted) await this.#kubelet.stop(POD_GRACE_MS);
    await this.#server?.close();
  }

  async #stopPrograms(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.stop()));
  }

  async #startKubelet(server: ApiServer): Promise<void> {
    this.#kubeletStarted = true;
    await this.#kubelet.start(server.store);
  }

  async #startPrograms(server: ApiServer, signal: AbortSignal): Promise<{ apiUrl: string; metricsUrl: string }> {
    let [apiUrl, metricsUrl] = ['', ''];
    const controller = this.#program(server, 'controller', {
      env: {
        BERTH_RUNNER_IMAGE: RUNNER_IMAGE,
        BERTH_IMAGES_ARE_PROGRAMS: 'true',
        BERTH_HEALTH_HOST: '127.0.0.1',
      },
      place: async () => {
        const port = await freePort();
        metricsUrl = `http://127.0.0.1:${port}/metrics`;
        return { env: { BERTH_HEALTH_PORT: String(port) }, readyUrl: `http://127.0.0.1:${port}/readyz` };
      },
      // The only controller there can be is gone: its successor need not wait for its lease to run out.
      prepare: () => this.#freeLease(server),
    });
    const api = this.#program(server, 'api', {
      env: { BERTH_API_HOST: '127.0.0.1' },
      place: async () => {
        const port = this.#config.apiPort || (await freePort());
        apiUrl = `http://127.0.0.1:${port}`;
        return { env: { BERTH_API_PORT: String(port) }, readyUrl: `${apiUrl}/readyz` };
      },
    });
    signal.throwIfAborted();
    this.#programs.push(controller, api);
    await Promise.all(this.#programs.map((program) => program.start()));
    this.#deps.logger.info({ apiUrl }, 'programs are ready');
    return { apiUrl, metricsUrl };
  }

  #program(
    server: ApiServer,
    name: 'controller' | 'api',
    { env, place, prepare }: Pick<ProgramSpec, 'place' | 'prepare'> & { env: Record<string, string> },
  ): Program {
    const home = this.#home;
    const token = server.mintToken({
      username: `system:serviceaccount:${SYSTEM_NAMESPACE}:berth-${name}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${SYSTEM_NAMESPACE}`, 'system:authenticated'],
    });
    const kubeconfig = home.programKubeconfig(name);
    home.write(kubeconfig, JSON.stringify(server.kubeconfig(token)));
    return new Program(
      {
        name,
        argv: [...NODE, join(REPOSITORY, name, 'main.ts')],
        env: {
          ...process.env,
          NODE_COMPILE_CACHE: home.cache,
          KUBECONFIG: kubeconfig,
          BERTH_NAMESPACE: SYSTEM_NAMESPACE,
          [MARKER_HOME]: home.path,
          ...env,
        },
        logPath: home.log(name),
        place,
        ...(prepare ? { prepare } : {}),
      },
      this.#deps,
    );
  }

  /** It is never deleted: its epoch goes on, and a missing one says nothing of who led before. */
  async #freeLease({ store }: ApiServer): Promise<void> {
    try {
      const lease = await store.get(leases, { namespace: SYSTEM_NAMESPACE, name: CONTROLLER_LEASE });
      await store.replace(leases, { ...lease, spec: { ...lease.spec, holderIdentity: '' } });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  #images() {
    const entrypoint = [process.execPath, ...NODE_FLAGS, join(REPOSITORY, 'runner', 'main.ts')];
    return {
      [MACHINE_IMAGE]: { entrypoint: [] },
      [repository(RUNNER_IMAGE)]: { entrypoint, env: { NODE_COMPILE_CACHE: this.#home.cache } },
    };
  }
}
