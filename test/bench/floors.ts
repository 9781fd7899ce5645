/** Floors: what a cluster needs for the parts of a turn or a start that nothing of Berth can avoid. */
import { randomUUID } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as delay } from 'node:timers/promises';
import type { CustomResourceDefinition, Pod } from '../../core/kube/builtin.ts';
import { customResourceDefinitions, namespaces, pods } from '../../core/kube/resources.ts';
import type { KubeObject, NamespacedObject, PodStream, Resource } from '../../core/kube/types.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import { nodePath } from '../../images/base.ts';
import { eventually } from '../support/eventually.ts';
import type { BenchCluster } from './cluster.ts';
import { Watched } from './watched.ts';

const GROUP = 'bench.berth.dev';

interface Floor extends NamespacedObject {
  spec: { input: string };
  status?: { output?: string };
}

const floors: Resource<Floor> = { group: GROUP, version: 'v1', plural: 'floors', kind: 'Floor', namespaced: true };

/** Static program of the runner's image that says again what it is told. */
const ECHO = ['/usr/bin/busybox', 'cat'];
const SLEEP = ['/usr/bin/busybox', 'sleep', '86400'];
/** Runs a program for each line, which is its input, its file and its arguments as JSON; prints the milliseconds. */
const SPAWNER = `
const { spawn } = require('node:child_process');
const run = ([input, file, ...args]) => new Promise((resolve, reject) => {
  const started = performance.now();
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdout.resume();
  child.stderr.resume();
  child.on('error', reject);
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  child.on('close', (code) => code === 0 ? resolve(performance.now() - started) : reject(new Error(file + ' ended with ' + code)));
});
require('node:readline').createInterface({ input: process.stdin }).on('line', async (line) => console.log(await run(JSON.parse(line))));
`;

/** First attempt of an early attach after the pod's creation, and pause between attempts, milliseconds. */
const FIRST_ATTEMPT_MS = 100;
const AGAIN_MS = 25;
const START_LIMIT_MS = 60_000;

function definition(): CustomResourceDefinition {
  const text = { type: 'object', properties: { input: { type: 'string' }, output: { type: 'string' } } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: text, status: text } } };
  const version = { name: 'v1', served: true, storage: true, subresources: { status: {} }, schema };
  const names = { plural: 'floors', singular: 'floor', kind: 'Floor', listKind: 'FloorList' };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `floors.${GROUP}` },
    spec: { group: GROUP, scope: 'Namespaced', names, versions: [version] },
  } as unknown as CustomResourceDefinition;
}

/** Pod of the same image, resources and restrictions as a session's, without volumes, that runs another program. */
function withoutVolumes(of: Pod, namespace: string, name: string, command: string[]): Pod {
  const [container] = of.spec.containers;
  const { image, imagePullPolicy, resources, securityContext } = container ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 0,
      securityContext: of.spec.securityContext ?? {},
      containers: [
        {
          name: CONTAINER,
          ...(image ? { image } : {}),
          ...(imagePullPolicy ? { imagePullPolicy } : {}),
          stdin: true,
          command,
          resources: resources ?? {},
          securityContext: securityContext ?? {},
        },
      ],
    },
  };
}

/** Spec of the pod of `bare`, for others that start pods: like that of a session's pod. */
export const sleeping = (of: Pod): Pod['spec'] => withoutVolumes(of, '', '', SLEEP).spec;

export const isReady = (pod: Pod) =>
  Boolean(pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'));

/** A stream of a pod, as lines: what is written, and the next line that comes back. */
class Lines {
  readonly #decoder = new StringDecoder('utf8');
  #stream: PodStream | undefined;
  #text = '';
  #arrived: (line: string) => void = () => {};

  readonly onStdout = (chunk: Buffer): void => {
    this.#text += this.#decoder.write(chunk);
    const at = this.#text.indexOf('\n');
    if (at < 0) return;
    const line = this.#text.slice(0, at);
    this.#text = this.#text.slice(at + 1);
    this.#arrived(line);
  };

  opened(stream: PodStream): this {
    this.#stream = stream;
    return this;
  }

  /** Resolves with the next line after a line was written. Rejects when the stream ends before. */
  async ask(line: string): Promise<string> {
    const stream = this.#stream;
    if (!stream) throw new Error('the stream is not open');
    const answer = new Promise<string>((resolve) => {
      this.#arrived = resolve;
    });
    await stream.write(`${line}\n`);
    const ended = stream.closed.then((end) => {
      throw new Error(`the stream ended: ${JSON.stringify(end)}`);
    });
    ended.catch(() => {});
    return Promise.race([answer, ended]);
  }

  close(): void {
    this.#stream?.close();
  }
}

/** The floors of one cluster, each method one sample in milliseconds. */
export class Floors {
  readonly #cluster: BenchCluster;
  readonly #template: Pod;
  /** Namespace of the pods that stay, apart from those that are measured. */
  readonly #namespace: string;
  #watched!: Watched<Floor>;
  #echo!: Lines;
  #spawner!: Lines;
  #count = 0;

  private constructor(cluster: BenchCluster, template: Pod) {
    this.#cluster = cluster;
    this.#template = template;
    this.#namespace = `${cluster.namespace}-floors`;
  }

  /** Starts what the floors need. `template` is the pod of a session. */
  static async start(cluster: BenchCluster, template: Pod): Promise<Floors> {
    const made = new Floors(cluster, template);
    try {
      await made.#start();
      return made;
    } catch (error) {
      await made.stop();
      throw error;
    }
  }

  async #start(): Promise<void> {
    const { client } = this.#cluster;
    const namespace = this.#namespace;
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await client.create(customResourceDefinitions, definition()).catch((error) => {
      // A run that was killed left it.
      if (error.reason !== 'AlreadyExists') throw error;
    });
    await eventually(() => client.list(floors, { namespace }), { what: 'the floors are served' });
    this.#watched = await Watched.open(client, floors, namespace);
    await eventually(() => client.create(pods, this.#pod(namespace, 'echo', ECHO)), { what: 'the pod echo' });
    await client.create(pods, this.#pod(namespace, 'spawner', SLEEP));
    this.#echo = await this.#attached(namespace, 'echo');
    this.#spawner = await eventually(() => this.#spawning(), { what: 'the spawner runs' });
  }

  /** Rejects while the pod is not running: an exec that comes too early may be opened and end at once. */
  async #spawning(): Promise<Lines> {
    const spawner = new Lines();
    const command = [nodePath, '-e', SPAWNER];
    const streams = { container: CONTAINER, stdin: true, stdout: true, onStdout: spawner.onStdout };
    const ref = { namespace: this.#namespace, name: 'spawner' };
    spawner.opened(await this.#cluster.client.exec(ref, { ...streams, command }));
    await spawner.ask(JSON.stringify(['', '/usr/bin/busybox', 'true']));
    return spawner;
  }

  #pod(namespace: string, name: string, command: string[]): Pod {
    return withoutVolumes(this.#template, namespace, name, command);
  }

  /** An attach to a pod that echoes, tried from its creation on until one line came back. */
  async #attached(namespace: string, name: string): Promise<Lines> {
    const deadline = performance.now() + START_LIMIT_MS;
    await delay(FIRST_ATTEMPT_MS);
    for (;;) {
      const lines = new Lines();
      const options = { container: CONTAINER, stdin: true, stdout: true, onStdout: lines.onStdout };
      try {
        lines.opened(await this.#cluster.client.attach({ namespace, name }, options));
        await lines.ask('x');
        return lines;
      } catch (error) {
        lines.close();
        if (performance.now() > deadline) throw error;
        await delay(AGAIN_MS);
      }
    }
  }

  /** F-write: an object is created, its status is written once, and a watch shows it. */
  async write(): Promise<number> {
    const { client } = this.#cluster;
    const namespace = this.#namespace;
    const name = `floor-${this.#count++}`;
    const seen = this.#watched.until(name, ({ status }) => status?.output === 'x');
    const started = performance.now();
    const object = await client.create(floors, { metadata: { namespace, name }, spec: { input: 'x' } });
    await client.replace(floors, { ...object, status: { output: 'x' } }, { subresource: 'status' });
    return (await seen).at - started;
  }

  /** F-attach: a line to a container over an open attach, and its echo. */
  async attach(): Promise<number> {
    const started = performance.now();
    await this.#echo.ask('x');
    return performance.now() - started;
  }

  /** F-spawn: a program from Node in a container like a runner's, until it has ended. */
  async spawn(command: readonly string[], input: string): Promise<number> {
    return Number(await this.#spawner.ask(JSON.stringify([input, ...command])));
  }

  /** F-node: Node with an empty program in the same container. */
  node(): Promise<number> {
    return this.spawn([nodePath, '-e', '0'], '');
  }

  /**
   * F-container: a pod whose PID 1 echoes, from its creation until an early attach has the echo. Deletes it. `change` makes it
   * another pod.
   */
  async container(change: (pod: Pod) => void = () => {}): Promise<number> {
    const { client, namespace } = this.#cluster;
    const name = `container-${this.#count++}`;
    const pod = this.#pod(namespace, name, ECHO);
    change(pod);
    const started = performance.now();
    await client.create(pods, pod);
    const lines = await this.#attached(namespace, name);
    const ms = performance.now() - started;
    lines.close();
    await client.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 });
    await this.#cluster.noPods();
    return ms;
  }

  /** Bare: a pod of the same image from its creation until a watch shows it Ready. Deletes it. */
  async bare(): Promise<number> {
    const { client, namespace } = this.#cluster;
    const name = `bare-${this.#count++}`;
    const create = () => client.create(pods, this.#pod(namespace, name, SLEEP));
    const { ms } = await this.#cluster.timed(pods, name, create, isReady);
    await client.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 });
    await this.#cluster.noPods();
    return ms;
  }

  /**
   * Status writes a second that the API server takes from a client that does nothing else: `writers` patch an object
   * each, the next one as soon as the last was answered, for so long.
   */
  async patchesPerSecond(writers: number, ms: number): Promise<number> {
    const { client } = this.#cluster;
    const namespace = this.#namespace;
    const names = Array.from({ length: writers }, () => `floor-${this.#count++}`);
    for (const name of names) await client.create(floors, { metadata: { namespace, name }, spec: { input: 'x' } });
    let writes = 0;
    const started = performance.now();
    const end = started + ms;
    await Promise.all(
      names.map(async (name) => {
        while (performance.now() < end) {
          const patch = { status: { output: randomUUID() } };
          await client.patch<KubeObject>(floors, { namespace, name }, patch, { subresource: 'status' });
          writes += 1;
        }
      }),
    );
    return writes / ((performance.now() - started) / 1000);
  }

  async stop(): Promise<void> {
    const { client } = this.#cluster;
    this.#echo?.close();
    this.#spawner?.close();
    this.#watched?.close();
    const isGone = (error: { reason?: string }) => {
      if (error.reason !== 'NotFound') throw error;
    };
    await client.delete(customResourceDefinitions, { name: `floors.${GROUP}` }).catch(isGone);
    await client.delete(namespaces, { name: this.#namespace }).catch(isGone);
  }
}
