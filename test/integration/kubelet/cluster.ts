/** An API server and a kubelet in this process, with a home of their own, and a client for what goes over the wire. */

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { secrets } from '../../../core/kube/resources.ts';
import { silentLogger, systemClock, systemRandom } from '../../../core/system.ts';
import type { Store } from '../../../local/apiserver/types.ts';
import { Kubelet } from '../../../local/kubelet/kubelet.ts';
import { type Container, type Pod, type PodObject, type PodSpec, pods } from '../../../local/kubelet/types.ts';
import { type TestServer, testServer } from '../../support/api-server.ts';
import { Channels } from '../../support/channels.ts';
import { eventually } from '../../support/eventually.ts';
import { type Connection, RawApi } from '../../support/raw-api.ts';
import { skipWithout } from '../../support/requires.ts';

export const SHELL_IMAGE = 'test.local/shell';

const KEEPER = fileURLToPath(new URL('../../../build/keeper', import.meta.url));
/** A reason to skip what needs terminals, which the keeper makes. */
export const noTerminals = skipWithout('keeper', existsSync(KEEPER), 'there is no build/keeper: run make keeper');

const images = {
  [SHELL_IMAGE]: { entrypoint: ['/bin/sh', '-c'] },
};

export interface LogQuery {
  [name: string]: string;
}

export class TestCluster {
  readonly home: string;
  readonly server: TestServer;
  kubelet: Kubelet;
  readonly #api: RawApi;
  readonly #dispatcher: Agent;

  private constructor(home: string, server: TestServer, kubelet: Kubelet) {
    this.home = home;
    this.server = server;
    this.kubelet = kubelet;
    this.#api = new RawApi(server.connection);
    this.#dispatcher = new Agent({ connect: { ca: server.ca } });
  }

  static async start(keeper = KEEPER): Promise<TestCluster> {
    const home = mkdtempSync(join(tmpdir(), 'berth-kubelet-'));
    let cluster: TestCluster | undefined;
    const kubelet = newKubelet(home, keeper);
    const current = () => (cluster?.kubelet ?? kubelet).handlers;
    const server = await testServer({
      pods: { log: (...args) => current().log(...args), stream: (...args) => current().stream(...args) },
    });
    await kubelet.start(server.store);
    cluster = new TestCluster(home, server, kubelet);
    return cluster;
  }

  get connection(): Connection {
    return this.server.connection;
  }

  get store(): Store {
    return this.server.store;
  }

  /** Starts another kubelet of the same home, after `between`. */
  async restart(between: () => unknown = () => {}, store = this.store): Promise<void> {
    await this.kubelet.stop(1_000);
    await between();
    this.kubelet = newKubelet(this.home);
    await this.kubelet.start(store);
  }

  async stop(): Promise<void> {
    await this.kubelet.stop(1_000);
    await this.server.close();
    await this.#api.close();
    await this.#dispatcher.destroy();
    // Pipes may still be made there for a next container.
    rmSync(this.home, { recursive: true, force: true, maxRetries: 10 });
  }

  /** A pod of one container that runs `script` by a shell, unless `container` says otherwise. */
  create(name: string, script: string, container: Partial<Container> = {}, spec: Partial<PodSpec> = {}): Promise<Pod> {
    const object: PodObject = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: {
        restartPolicy: 'Never',
        containers: [{ name: 'main', image: SHELL_IMAGE, args: [script], ...container }],
        ...spec,
      },
    };
    return this.store.create(pods, object);
  }

  /** A Secret with the key `word`. */
  async secret(name: string, word: string): Promise<void> {
    await this.store.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'default' },
      data: { word: Buffer.from(word).toString('base64') },
    });
  }

  /** Says what the pod's container waits for. */
  async waiting(name: string): Promise<string | undefined> {
    return (await this.get(name)).status?.containerStatuses?.[0]?.state.waiting?.message;
  }

  get(name: string): Promise<Pod> {
    return this.store.get(pods, { namespace: 'default', name });
  }

  delete(name: string, gracePeriodSeconds?: number): Promise<void> {
    const options = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    return this.store.delete(pods, { namespace: 'default', name }, options);
  }

  phase(name: string, ...phases: string[]): Promise<Pod> {
    return eventually(
      async () => {
        const pod = await this.get(name);
        return phases.includes(pod.status?.phase ?? '') ? pod : undefined;
      },
      { what: `pod ${name} ${phases.join(' or ')}` },
    );
  }

  gone(name: string): Promise<unknown> {
    return eventually(
      () =>
        this.get(name).then(
          () => false,
          () => true,
        ),
      { what: `pod ${name} gone` },
    );
  }

  async log(name: string, query: LogQuery = {}): Promise<{ status: number; text: string }> {
    return this.#api.get(this.#path(name, 'log', new URLSearchParams(query)));
  }

  /** The log from now on, piece by piece into `pieces`; resolves when it ends. */
  async follow(name: string, pieces: string[]): Promise<void> {
    const { body } = await request(
      this.connection.url + this.#path(name, 'log', new URLSearchParams({ follow: 'true' })),
      {
        headers: { authorization: `Bearer ${this.connection.token}` },
        dispatcher: this.#dispatcher,
      },
    );
    for await (const piece of body) pieces.push(Buffer.from(piece).toString());
  }

  attach(name: string, query: Record<string, string> = {}, protocol = 'v5.channel.k8s.io'): Promise<Channels> {
    const all = new URLSearchParams({ stdin: 'true', stdout: 'true', stderr: 'true', ...query });
    return Channels.open(this.connection, this.#path(name, 'attach', all), protocol);
  }

  exec(name: string, command: string[], query: Record<string, string> = {}, protocol?: string): Promise<Channels> {
    const all = new URLSearchParams({ stdout: 'true', stderr: 'true', ...query });
    for (const word of command) all.append('command', word);
    return Channels.open(this.connection, this.#path(name, 'exec', all), protocol);
  }

  #path(name: string, what: string, query: URLSearchParams): string {
    return `/api/v1/namespaces/default/pods/${name}/${what}?${query}`;
  }
}

function newKubelet(home: string, keeper = KEEPER): Kubelet {
  return new Kubelet({ home, images, keeper, clock: systemClock, random: systemRandom, logger: silentLogger });
}
