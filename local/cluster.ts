/** A running embedded cluster: the API server and the kubelet in this process, the programs as its children. */

import { rmSync } from 'node:fs';
import { HELPER_PATH } from '../core/enter/hello.ts';
import { isConflict, isNotFound } from '../core/kube/errors.ts';
import { leases } from '../core/kube/resources.ts';
import { NODE_FLAGS } from '../core/program/node-flags.ts';
import { builtFile, mainModule, ownFile } from '../core/program/own-files.ts';
import { type Clock, delay, type Logger, type Random } from '../core/runtime.ts';
import { keepApiToken, TOKEN_SECONDS } from './api-token.ts';
import { startApiServer } from './apiserver/server.ts';
import type { ApiServer } from './apiserver/types.ts';
import type { LocalConfig } from './config.ts';
import type { ClusterState, Home } from './home.ts';
import { repository } from './kubelet/images.ts';
import { Kubelet } from './kubelet/kubelet.ts';
import { LocalError, MARKER_HOME } from './leftovers.ts';
import { installManifests } from './manifests.ts';
import { freePort } from './ports.ts';
import { Program, type ProgramSpec } from './program.ts';
import { keepRotated } from './rotate.ts';

/** Namespace of the service accounts of controller and API. */
const SYSTEM_NAMESPACE = 'berth-system';

/** Account of programs of this machine that call the HTTP API; `manifests/embedded/rbac.yaml` has its rights. */
const LOCAL_ACCOUNT = { namespace: SYSTEM_NAMESPACE, name: 'berth-local' };
/** Audience of tokens for the HTTP API. */
const AUDIENCE = 'berth';

/** Grace time of pods when the cluster stops, milliseconds. */
const POD_GRACE_MS = 5_000;

/**
 * Limit for the requests of a dead program to end, milliseconds. After it the successor waits for the lease to expire.
 */
const REVOKE_MS = 5_000;

/** Image name of the runner of this repository for the kubelet. */
const RUNNER_IMAGE = 'berth.local/runner:local';
/** Image of this machine's programs: a container of it names its command. */
const MACHINE_IMAGE = 'berth.local/machine';
/** Name of the controller's lease unless another is configured. */
const CONTROLLER_LEASE = 'berth-controller';

/** Command line prefix that runs a program of Berth with Node. */
const NODE = [process.execPath, '--disable-warning=ExperimentalWarning'];

interface ProgramOptions {
  env: Record<string, string>;
  /** Prepares every start, when no earlier run lives and none of its requests is under way. */
  beforeStart?: () => Promise<void>;
}

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
  #stopRotation = () => {};
  #stopApiToken = () => {};
  readonly #failed = Promise.withResolvers<never>();
  /** Rejects when the cluster cannot continue. */
  readonly failed = this.#failed.promise;

  /** `home` is locked by the caller. */
  constructor(home: Home, config: LocalConfig, deps: ClusterDeps) {
    this.#home = home;
    this.#config = config;
    this.#deps = deps;
    this.failed.catch(() => {});
    this.#kubelet = new Kubelet({ home: home.path, images: this.#images(), keeper: builtFile('keeper'), ...deps });
  }

  /** Resolves when everything is ready; `signal` aborts the start. `stop` must be called even after a rejection. */
  async start(signal: AbortSignal): Promise<ClusterState> {
    const home = this.#home;
    this.#stopRotation = keepRotated(
      ['local', 'controller', 'api'].map((name) => home.log(name)),
      this.#deps,
    );
    signal.addEventListener('abort', () => this.#stopPrograms(), { once: true });
    const last = home.ports();
    const port = this.#config.port || (last ? await freePort(last.port) : 0);
    const token = home.token ?? this.#deps.random.bytes(32).toString('base64url');
    const server = await startApiServer({
      ...this.#deps,
      dataDir: home.cluster,
      port,
      tokens: [{ token, user: { username: 'admin', groups: ['system:masters', 'system:authenticated'] } }],
      pods: this.#kubelet.handlers,
      onStorageLost: (error) => this.#failed.reject(error),
    }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') throw error;
      throw new LocalError(`port ${port} of 127.0.0.1 is taken by another program: name another, or none`);
    });
    this.#server = server;
    home.removeProgramKubeconfigs();
    home.write(home.kubeconfig, `${JSON.stringify(server.kubeconfig(token), null, 2)}\n`);
    const folders = [ownFile('manifests'), ownFile('manifests/embedded')];
    await Promise.all([this.#startKubelet(server), installManifests(server.store, folders)]);
    signal.throwIfAborted();
    const urls = await this.#startPrograms(server, signal, last?.apiPort);
    this.#stopApiToken = keepApiToken(
      { home, mint: () => server.accountToken(LOCAL_ACCOUNT, { audience: AUDIENCE, seconds: TOKEN_SECONDS }) },
      this.#deps,
    );
    const startedAt = new Date(this.#deps.clock.now()).toISOString();
    return { pid: process.pid, url: server.url, ...urls, apiTokenFile: home.apiToken, startedAt };
  }

  /** Stops the programs, then the pods, then the API. */
  async stop(): Promise<void> {
    this.#stopApiToken();
    await this.#stopPrograms();
    if (this.#kubeletStarted) await this.#kubelet.stop(POD_GRACE_MS);
    await this.#server?.close();
    this.#stopRotation();
  }

  async #stopPrograms(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.stop()));
  }

  async #startKubelet(server: ApiServer): Promise<void> {
    this.#kubeletStarted = true;
    await this.#kubelet.start(server.store);
  }

  async #startPrograms(
    server: ApiServer,
    signal: AbortSignal,
    lastApiPort: number | undefined,
  ): Promise<{ apiUrl: string; metricsUrl: string }> {
    let [apiUrl, metricsUrl] = ['', ''];
    const controller = this.#program(server, 'controller', {
      env: {
        BERTH_RUNNER_IMAGE: RUNNER_IMAGE,
        BERTH_PYTHON_RUNNER_IMAGE: RUNNER_IMAGE,
        BERTH_UV: process.env.BERTH_UV ?? 'uv',
        BERTH_BUILDER: ownFile('runner/environment/build.py'),
        BERTH_IMAGES_ARE_PROGRAMS: 'true',
        BERTH_HEALTH_HOST: '127.0.0.1',
      },
      place: async () => {
        const port = await freePort();
        metricsUrl = `http://127.0.0.1:${port}/metrics`;
        return { env: { BERTH_HEALTH_PORT: String(port) }, readyUrl: `http://127.0.0.1:${port}/readyz` };
      },
      beforeStart: () => this.#freeLease(server),
    });
    const api = this.#program(server, 'api', {
      env: { BERTH_API_HOST: '127.0.0.1', BERTH_AUDIENCES: AUDIENCE },
      place: async () => {
        const port = this.#config.apiPort || (await freePort(lastApiPort));
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
    { env, place, beforeStart }: Pick<ProgramSpec, 'place'> & ProgramOptions,
  ): Program {
    const home = this.#home;
    const user = {
      username: `system:serviceaccount:${SYSTEM_NAMESPACE}:berth-${name}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${SYSTEM_NAMESPACE}`, 'system:authenticated'],
    };
    let last: { token: string; kubeconfig: string } | undefined;
    // Each run has its own token in its own file, so that no run can use the token of another.
    const prepare = async () => {
      const revoked = last ? server.revokeToken(last.token) : Promise.resolve();
      if (last) rmSync(last.kubeconfig, { force: true });
      const isDead = revoked.then(() => true);
      const isLate = delay(this.#deps.clock, REVOKE_MS).then(() => false);
      if (await Promise.race([isDead, isLate])) await beforeStart?.();
      else this.#deps.logger.warn({ program: name }, 'requests of a dead program are still under way');
      const token = server.mintToken(user);
      const kubeconfig = home.programKubeconfig(name, this.#deps.random.bytes(8).toString('hex'));
      last = { token, kubeconfig };
      home.write(kubeconfig, JSON.stringify(server.kubeconfig(token)));
      return { KUBECONFIG: kubeconfig };
    };
    return new Program(
      {
        name,
        argv: [...NODE, mainModule(name)],
        env: {
          ...process.env,
          NODE_COMPILE_CACHE: home.cache,
          BERTH_NAMESPACE: SYSTEM_NAMESPACE,
          [MARKER_HOME]: home.path,
          ...env,
        },
        logPath: home.log(name),
        place,
        prepare,
      },
      this.#deps,
    );
  }

  /**
   * Clears the holder of the controller's lease, as a controller does at a regular stop, so that the next one need not
   * wait until it expires. The last controller is dead: it was seen to exit, or `endLeftovers` did not find it. Its
   * requests are dead too: its token was revoked, or the API server that would have carried them out has ended.
   */
  async #freeLease({ store }: ApiServer): Promise<void> {
    const { logger } = this.#deps;
    try {
      const lease = await store.get(leases, { namespace: SYSTEM_NAMESPACE, name: CONTROLLER_LEASE });
      if (!lease.spec?.holderIdentity) return;
      await store.replace(leases, { ...lease, spec: { ...lease.spec, holderIdentity: '' } });
      logger.info({ holder: lease.spec.holderIdentity }, 'lease of a dead controller released');
    } catch (error) {
      if (isNotFound(error)) return;
      // A controller that was started elsewhere holds it.
      if (!isConflict(error)) throw error;
      logger.info({}, 'lease is held by a running controller');
    }
  }

  #images() {
    const entrypoint = [process.execPath, ...NODE_FLAGS, mainModule('runner')];
    return {
      [MACHINE_IMAGE]: { entrypoint: [] },
      [repository(RUNNER_IMAGE)]: {
        entrypoint,
        env: { NODE_COMPILE_CACHE: this.#home.cache },
        programs: { [HELPER_PATH]: builtFile('bin/berth-enter') },
      },
    };
  }
}
