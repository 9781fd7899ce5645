/** An API server and a kubelet in this process, with a home of their own, and a client for what goes over the wire. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, fetch } from 'undici';
import { WebSocket } from 'ws';
import { silentLogger, systemClock, systemRandom } from '../../../core/system.ts';
import { startApiServer } from '../../../local/apiserver/server.ts';
import type { ApiServer, Store } from '../../../local/apiserver/types.ts';
import { Kubelet } from '../../../local/kubelet/kubelet.ts';
import { type Container, type Pod, type PodObject, type PodSpec, pods } from '../../../local/kubelet/types.ts';
import { eventually } from '../../support/eventually.ts';

export const SHELL_IMAGE = 'test.local/shell';

const images = {
  [SHELL_IMAGE]: { entrypoint: ['/bin/sh', '-c'] },
};

export interface LogQuery {
  [name: string]: string;
}

/** What came over one attach or exec. */
export class Channels {
  readonly stdout: Buffer[] = [];
  readonly stderr: Buffer[] = [];
  status:
    | { status: string; message?: string; reason?: string; details?: { causes: { message: string }[] } }
    | undefined;
  closed = false;
  readonly #socket: WebSocket;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      if (data[0] === 1) this.stdout.push(data.subarray(1));
      else if (data[0] === 2) this.stderr.push(data.subarray(1));
      else if (data[0] === 3 && data.length > 1) this.status = JSON.parse(data.toString('utf8', 1));
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
    });
  }

  get out(): string {
    return Buffer.concat(this.stdout).toString();
  }

  get err(): string {
    return Buffer.concat(this.stderr).toString();
  }

  get outBytes(): number {
    return this.stdout.reduce((sum, piece) => sum + piece.length, 0);
  }

  send(text: string): void {
    this.#socket.send(Buffer.concat([Buffer.of(0), Buffer.from(text)]));
  }

  closeStdin(): void {
    this.#socket.send(Buffer.of(255, 0));
  }

  stopReading(): void {
    this.#socket.pause();
  }

  readAgain(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.terminate();
  }
}

export class TestCluster {
  readonly home: string;
  readonly server: ApiServer;
  kubelet: Kubelet;
  readonly #token: string;
  readonly #dispatcher: Agent;

  private constructor(home: string, server: ApiServer, kubelet: Kubelet) {
    this.home = home;
    this.server = server;
    this.kubelet = kubelet;
    this.#token = server.mintToken({ username: 'test', groups: ['system:masters'] });
    this.#dispatcher = new Agent({ connect: { ca: server.ca } });
  }

  static async start(): Promise<TestCluster> {
    const home = mkdtempSync(join(tmpdir(), 'berth-kubelet-'));
    const kubelet = newKubelet(home);
    const server = await startApiServer({
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      tokens: [],
      pods: kubelet.handlers,
    });
    await kubelet.start(server.store);
    return new TestCluster(home, server, kubelet);
  }

  get store(): Store {
    return this.server.store;
  }

  async stop(): Promise<void> {
    await this.kubelet.stop(1_000);
    await this.server.close();
    await this.#dispatcher.close();
    rmSync(this.home, { recursive: true, force: true });
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
    const answer = await fetch(this.#url(name, 'log', new URLSearchParams(query)), {
      headers: { authorization: `Bearer ${this.#token}` },
      dispatcher: this.#dispatcher,
    });
    return { status: answer.status, text: await answer.text() };
  }

  /** The log from now on, piece by piece into `pieces`, until it ends. */
  follow(name: string, pieces: string[]): { done: Promise<void>; stop: () => void } {
    const abort = new AbortController();
    const run = async () => {
      const answer = await fetch(this.#url(name, 'log', new URLSearchParams({ follow: 'true' })), {
        headers: { authorization: `Bearer ${this.#token}` },
        dispatcher: this.#dispatcher,
        signal: abort.signal,
      });
      for await (const piece of answer.body!) pieces.push(Buffer.from(piece).toString());
    };
    return { done: run(), stop: () => abort.abort() };
  }

  attach(name: string, query: Record<string, string> = {}, protocol = 'v5.channel.k8s.io'): Promise<Channels> {
    const all = new URLSearchParams({ stdin: 'true', stdout: 'true', stderr: 'true', ...query });
    return this.#connect(this.#url(name, 'attach', all), protocol);
  }

  exec(name: string, command: string[], query: Record<string, string> = {}): Promise<Channels> {
    const all = new URLSearchParams({ stdout: 'true', stderr: 'true', ...query });
    for (const word of command) all.append('command', word);
    return this.#connect(this.#url(name, 'exec', all), 'v5.channel.k8s.io');
  }

  #url(name: string, what: string, query: URLSearchParams): string {
    return `${this.server.url}/api/v1/namespaces/default/pods/${name}/${what}?${query}`;
  }

  /** Rejects with an Error whose message is the HTTP status when the upgrade is refused. */
  #connect(url: string, protocol: string): Promise<Channels> {
    const socket = new WebSocket(url.replace('http', 'ws'), [protocol], {
      ca: this.server.ca,
      headers: { authorization: `Bearer ${this.#token}` },
      perMessageDeflate: false,
    });
    const channels = new Channels(socket);
    return new Promise((resolve, reject) => {
      socket.once('open', () => resolve(channels));
      socket.once('unexpected-response', (_req, res) => reject(new Error(String(res.statusCode))));
      socket.once('error', reject);
    });
  }
}

export function newKubelet(home: string): Kubelet {
  return new Kubelet({ home, images, clock: systemClock, random: systemRandom, logger: silentLogger });
}

/** Pids of processes whose environment holds this text. */
export function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(text);
      } catch {
        return false;
      }
    })
    .map(Number);
}

export function exists(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

export { sleep };
