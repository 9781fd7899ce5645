import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HELPER_PATH } from '../../core/enter/hello.ts';
import { KubeClient } from '../../core/kube/client.ts';
import { loadConnection } from '../../core/kube/config.ts';
import { events, leases, nodes, pods } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import { NODE_FLAGS } from '../../core/program/node-flags.ts';
import { builtFile } from '../../core/program/own-files.ts';
import {
  type Session,
  type SessionClass,
  type StoredSession,
  type StoredTurn,
  sessionclasses,
  sessions,
  type Turn,
  turns,
} from '../../core/resources/kinds.ts';
import { LABEL_SESSION, parseStoreKey } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { readStored } from '../../core/store/read.ts';
import { silentLogger, systemClock, systemRandom } from '../../core/system.ts';
import { startApiServer } from '../../local/apiserver/server.ts';
import type { ApiServer } from '../../local/apiserver/types.ts';
import { Kubelet } from '../../local/kubelet/kubelet.ts';
import { installManifests } from '../../local/manifests.ts';
import { eventually } from './eventually.ts';
import { Partition } from './partition.ts';
import { processesWith } from './processes.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** Command line of the runner, from its sources. */
export const RUNNER = [process.execPath, ...NODE_FLAGS, join(ROOT, 'runner', 'main.ts')];
/** Limit of a test's own requests to the API server, long enough for a busy machine. */
const PATIENCE_MS = 120_000;
const NODE = [process.execPath, '--disable-warning=ExperimentalWarning'];

/** Lease duration for a test that kills no leader, long enough that a busy machine does not lose the lease. */
export const ONE_LEADER = { BERTH_LEASE_DURATION: '60s' };

/** Where Node keeps what it compiled of the programs, also where no suite is run as a whole. */
const NODE_COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'berth-test-compile-cache');

type Images = Readonly<
  Record<string, { entrypoint: string[]; env?: Record<string, string>; programs?: Record<string, string> }>
>;

/** User name of the controller of an installation. */
export const CONTROLLER = 'system:serviceaccount:berth-system:berth-controller';

/** Groups of a service account by its user name; other users have the group of all of them alone. */
function groupsOf(username: string): string[] {
  const [, namespace] = /^system:serviceaccount:([^:]+):/.exec(username) ?? [];
  const own = namespace ? ['system:serviceaccounts', `system:serviceaccounts:${namespace}`] : [];
  return [...own, 'system:authenticated'];
}

/** A controller process that a test may kill. */
export interface ControllerProcess {
  child: ChildProcess;
  kill(signal: NodeJS.Signals): Promise<void>;
  log(): string;
}

/**
 * The embedded API server and kubelet in this process, with controllers as separate processes with the rights of an
 * installation. A test of the controller can kill them at any moment.
 */
export class Installation {
  #home: string | undefined;
  #server: ApiServer | undefined;
  #client: KubeClient | undefined;
  readonly #clients: KubeClient[] = [];
  #kubelet: Kubelet | undefined;
  readonly #partition = new Partition();
  readonly #env: Record<string, string>;
  readonly #images: Images;
  readonly #controllers: ControllerProcess[] = [];
  #started = 0;

  /** `env`: further environment of every controller; `images`: further images. Nothing runs before `begin`. */
  constructor(env: Record<string, string> = {}, images: Images = {}) {
    this.#env = env;
    this.#images = images;
  }

  static start(env: Record<string, string> = {}, images: Images = {}): Promise<Installation> {
    return new Installation(env, images).begin();
  }

  /** Starts the API server and the kubelet. */
  async begin(): Promise<this> {
    const home = mkdtempSync(join(tmpdir(), 'berth-installation-'));
    this.#home = home;
    const deps = { clock: systemClock, random: systemRandom, logger: silentLogger };
    const images = {
      'berth.local/runner': {
        entrypoint: RUNNER,
        env: { NODE_COMPILE_CACHE },
        programs: { [HELPER_PATH]: builtFile('bin/berth-enter') },
      },
      'berth.local/machine': { entrypoint: [] },
      ...this.#images,
    };
    const kubelet = new Kubelet({ home, images, ...deps });
    this.#kubelet = kubelet;
    const server = await startApiServer({ ...deps, tokens: [], pods: kubelet.handlers });
    this.#server = server;
    await kubelet.start(this.#partition.wrap(server.store));
    await installManifests(server.store, [join(ROOT, 'manifests'), join(ROOT, 'manifests', 'embedded')]);
    this.#client = await this.as('admin', ['system:masters', 'system:authenticated']);
    return this;
  }

  /** Returns a client with the rights of a user: of a service account by its user name, or with these groups. */
  async as(username: string, groups = groupsOf(username)): Promise<KubeClient> {
    const client = new KubeClient({
      connection: await loadConnection({ path: this.kubeconfigOf(username, groups) }),
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
      userAgent: 'test',
      deadlineMs: PATIENCE_MS,
    });
    this.#clients.push(client);
    return client;
  }

  /** Writes a kubeconfig with a new token of the user; returns its path. */
  kubeconfigOf(username: string, groups = groupsOf(username)): string {
    const path = join(this.home, `${username.replaceAll(':', '_')}.json`);
    writeFileSync(path, JSON.stringify(this.server.kubeconfig(this.server.mintToken({ username, groups }))));
    return path;
  }

  /** Folder of everything that the installation and its tests write; removed by `stop`. */
  get home(): string {
    return begun(this.#home);
  }

  get server(): ApiServer {
    return begun(this.#server);
  }

  /** Client with the rights of an administrator. */
  get client(): KubeClient {
    return begun(this.#client);
  }

  get kubeconfig(): string {
    return join(this.home, 'admin.json');
  }

  /**
   * Releases the lease as a leader does at a regular stop, so that the next one need not wait. No controller may be
   * running.
   */
  async freeLease(): Promise<void> {
    const lease = await this.client.get(leases, { namespace: 'berth-system', name: 'berth-controller' });
    await this.client.replace(leases, { ...lease, spec: { ...lease.spec, holderIdentity: '' } });
  }

  /** Starts a controller and returns at once; the first leads within a second. */
  startController(env: Record<string, string> = {}): ControllerProcess {
    const number = ++this.#started;
    const kubeconfig = this.kubeconfigOf(CONTROLLER);
    const child = spawn(NODE[0] as string, [...NODE.slice(1), join(ROOT, 'controller', 'main.ts')], {
      env: {
        PATH: process.env.PATH,
        KUBECONFIG: kubeconfig,
        NODE_COMPILE_CACHE,
        BERTH_NAMESPACE: 'berth-system',
        BERTH_RUNNER_IMAGE: 'berth.local/runner',
        BERTH_PYTHON_RUNNER_IMAGE: 'berth.local/runner',
        BERTH_BUILDER: join(ROOT, 'runner', 'environment', 'build.py'),
        BERTH_IMAGES_ARE_PROGRAMS: 'true',
        BERTH_HEALTH_PORT: '0',
        BERTH_HEALTH_HOST: '127.0.0.1',
        BERTH_LEASE_DURATION: '2s',
        ...this.#env,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const logPath = join(this.home, `controller-${number}.log`);
    const out = createWriteStream(logPath);
    child.stdout.pipe(out);
    child.stderr.pipe(out);
    const controller: ControllerProcess = {
      child,
      log: () => (existsSync(logPath) ? readFileSync(logPath, 'utf8') : ''),
      kill: (signal) =>
        new Promise((resolve) => {
          if (child.exitCode !== null || child.signalCode !== null) return resolve();
          child.once('exit', () => resolve());
          child.kill(signal);
        }),
    };
    this.#controllers.push(controller);
    return controller;
  }

  async stop(): Promise<void> {
    // A failed test may have left the node cut off: its kubelet would wait for ever.
    this.#partition.down = false;
    await Promise.all(this.#controllers.map((controller) => controller.kill('SIGKILL')));
    await Promise.all(this.#clients.map((client) => client.close()));
    await this.#kubelet?.stop(2_000);
    await this.#server?.close();
    // Processes that were just killed may still write.
    if (this.#home) rmSync(this.#home, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Returns the logs of all controllers. */
  logs(): string {
    return this.#controllers.map((controller) => controller.log()).join('');
  }

  create(name: string, spec: Partial<Session['spec']>, namespace = 'default'): Promise<StoredSession> {
    const object = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', metadata: { name, namespace }, spec };
    return this.client.create(sessions, object as Session);
  }

  session(name: string): Promise<StoredSession> {
    return this.client.get(sessions, { namespace: 'default', name });
  }

  turn(session: string, name: string, input: unknown, spec: Partial<Turn['spec']> = {}): Promise<StoredTurn> {
    const object = {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Turn',
      metadata: { name, namespace: 'default' },
      spec: { session, input, ...spec },
    };
    return this.client.create(turns, object as Turn);
  }

  /** Resolves with the turn once it has ended. */
  ended(name: string, timeoutMs = 60_000): Promise<StoredTurn> {
    return eventually(
      async () => {
        const turn = await this.client.get(turns, { namespace: 'default', name });
        return isTerminal(turn.status?.phase) ? turn : undefined;
      },
      { timeoutMs, what: `turn ${name} ended` },
    );
  }

  /** Resolves with the session once `check` holds. */
  async until(name: string, what: string, check: (session: StoredSession) => boolean) {
    return eventually(
      async () => {
        const session = await this.session(name);
        return check(session) ? session : undefined;
      },
      { what: `session ${name} ${what}` },
    );
  }

  async turnUntil(name: string, what: string, check: (turn: StoredTurn) => boolean) {
    return eventually(
      async () => {
        const turn = await this.client.get(turns, { namespace: 'default', name });
        return check(turn) ? turn : undefined;
      },
      { what: `turn ${name} ${what}` },
    );
  }

  patch(name: string, spec: Partial<Session['spec']>): Promise<StoredSession> {
    return this.client.patch(sessions, { namespace: 'default', name }, { spec });
  }

  cancel(turn: string): Promise<StoredTurn> {
    return this.client.patch(turns, { namespace: 'default', name: turn }, { spec: { cancel: true } });
  }

  createClass(name: string, spec: Partial<SessionClass['spec']>): Promise<unknown> {
    const object = { apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata: { name }, spec };
    return this.client.create(sessionclasses, object as SessionClass);
  }

  delete(session: string): Promise<void> {
    return this.client.delete(sessions, { namespace: 'default', name: session });
  }

  /** Returns the turn's output from the status or the store. */
  async output<T = unknown>(turn: StoredTurn): Promise<T> {
    if (turn.status?.outputRef === undefined) return turn.status?.output as T;
    const key = parseStoreKey(turn.status.outputRef);
    if (!key) throw new Error(`outputRef ${turn.status.outputRef} is no key`);
    const data = await readStored(this.client, { namespace: 'default', kind: 'Output', ...key });
    return JSON.parse(data.toString()) as T;
  }

  /** Cuts the only node off from the control plane, or reconnects it. Its pods run on meanwhile. */
  async cutOff(cut: boolean): Promise<void> {
    this.#partition.down = cut;
    const ready = {
      type: 'Ready',
      status: cut ? 'Unknown' : 'True',
      reason: cut ? 'NodeStatusUnknown' : 'KubeletReady',
      lastTransitionTime: new Date().toISOString(),
    };
    await this.#patchNode({ status: { conditions: [ready] } }, { subresource: 'status' });
  }

  async cordon(cordoned: boolean): Promise<void> {
    await this.#patchNode({ spec: { unschedulable: cordoned || null } });
  }

  async #patchNode(patch: object, options: { subresource?: 'status' } = {}): Promise<void> {
    const { items } = await this.client.list(nodes);
    for (const { metadata } of items) await this.client.patch(nodes, { name: metadata.name }, patch, options);
  }

  /** Writes a pod's status, as a node or the control plane does. */
  report(pod: Stored, status: object): Promise<unknown> {
    const { namespace = 'default', name, uid } = pod.metadata;
    return this.client.patch(
      pods,
      { namespace, name },
      { metadata: { uid }, status },
      { type: 'strategic', subresource: 'status' },
    );
  }

  /** Evicts a pod, as `kubectl drain` does. */
  async evict(pod: Stored): Promise<void> {
    const message = 'Eviction API: evicting';
    const condition = { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message };
    await this.report(pod, { conditions: [condition] });
    const { namespace = 'default', name, uid } = pod.metadata;
    await this.client.delete(pods, { namespace, name }, { uid });
  }

  /** Kills the processes of a pod, as a machine that fails does. */
  async kill(pod: Stored): Promise<void> {
    const marker = `BERTH_POD_UID=${pod.metadata.uid}`;
    for (const pid of processesWith(marker)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The process ended together with another one.
      }
    }
  }

  /** Resolves once the session's turns, pod and processes are gone. */
  async gone(session: string, pod: Stored): Promise<void> {
    const what = `everything of session ${session} gone`;
    await eventually(
      async () => {
        const left = await this.client.list(turns, { namespace: 'default', fieldSelector: `spec.session=${session}` });
        return left.items.length === 0 && (await this.podsOf(session)).length === 0;
      },
      { what },
    );
    await eventually(() => processesWith(`BERTH_POD_UID=${pod.metadata.uid}`).length === 0, { what });
  }

  event(session: string, reason: string): Promise<unknown> {
    return eventually(
      async () => {
        const { items } = await this.client.list(events, {
          namespace: 'default',
          fieldSelector: `involvedObject.name=${session}`,
        });
        return items.find((event) => (event as unknown as { reason: string }).reason === reason);
      },
      { what: `event ${reason} of session ${session}` },
    );
  }

  async podsOf(session: string) {
    const { items } = await this.client.list(pods, {
      namespace: 'default',
      labelSelector: `${LABEL_SESSION}=${session}`,
    });
    return items;
  }
}

function begun<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('the installation has not begun: it is used outside of a test or a hook');
  return part;
}

/** Returns a program that answers each turn with an envelope: `code` reads `request` and returns the envelope. */
export function pythonAgent(code: string): { command: string[] } {
  const program = `
import json, os, sys, time
request = json.loads(sys.stdin.readline())
state = os.environ['BERTH_STATE_DIR']
def answer(output=None, **rest):
    print(os.environ['BERTH_RESULT_START_MARKER'])
    print(json.dumps({'status': 'success', 'output': output, **rest}))
    print(os.environ['BERTH_RESULT_END_MARKER'])
${code}
`;
  return { command: ['python3', '-c', program] };
}
