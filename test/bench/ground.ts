import type { Pod } from '../../core/kube/builtin.ts';
import { namespaces, pods } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import {
  type Session,
  type StoredSession,
  sessionpools,
  sessions,
  type Turn,
  turns,
} from '../../core/resources/kinds.ts';
import { LABEL_SESSION } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { takesPods } from '../e2e/support/cluster.ts';
import { someAtOnce } from './at-once.ts';
import { BenchCluster } from './cluster.ts';
import { newTurn } from './embedded.ts';
import { Floors } from './floors.ts';
import { Watched } from './watched.ts';

/** Agent of every session: a shell that starts a program, which answers with its input. */
export const AGENT = { command: ['sh', '-c', 'cat'], input: 'Text', result: 'Text' };

export function newSession(namespace: string, name: string, spec: object = {}): Session {
  return {
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'Session',
    metadata: { namespace, name },
    spec: { agent: AGENT, ...spec },
  } as unknown as Session;
}

const ended = (turn: Turn): boolean => isTerminal(turn.status?.phase);

/** A turn that has succeeded: milliseconds from the creation that caused it until its result is seen, and its pod. */
export interface Ran {
  ms: number;
  podUID: string;
}

/** Moments on the way of a turn, milliseconds from its creation: the creation is answered, and the turn is seen Running. */
export interface Moments {
  answeredMs: number;
  runningMs: number;
}

/** Throws unless the turn Succeeded. */
function succeeded({ ms, object: { metadata, status } }: { ms: number; object: Turn }): Ran {
  if (status?.phase !== 'Succeeded') throw new Error(`turn ${metadata.name}: ${JSON.stringify(status)}`);
  return { ms, podUID: status.podUID ?? '' };
}

/** Namespace, watch of its turns, and floors that the sections share which need a cluster. */
export class Ground {
  readonly cluster: BenchCluster;
  readonly floors: Floors;
  readonly turns: Watched<Turn>;
  /** Pod of a session, as its class makes it. */
  readonly template: Stored<Pod>;
  #count = 0;

  private constructor(cluster: BenchCluster, template: Stored<Pod>, floors: Floors, watched: Watched<Turn>) {
    this.cluster = cluster;
    this.template = template;
    this.floors = floors;
    this.turns = watched;
  }

  get namespace(): string {
    return this.cluster.namespace;
  }

  /** Makes the namespace and runs a first session there. */
  static async prepare(namespace: string): Promise<Ground> {
    const cluster = await BenchCluster.connect(namespace);
    const { client } = cluster;
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await takesPods(namespace);
    const template = await firstPod(cluster, 'first');
    const floors = await Floors.start(cluster, template);
    return new Ground(cluster, template, floors, await Watched.open(client, turns, namespace));
  }

  /** F-spawn: the agent's command in a container like the runner's. */
  spawn(): Promise<number> {
    return this.floors.spawn(AGENT.command, 'x');
  }

  /** Turn of a session, from its creation. */
  async turn(session: StoredSession): Promise<Ran> {
    const turn = this.#newTurn(session);
    const create = () => this.cluster.client.create(turns, turn);
    return succeeded(await this.turns.timed(turn.metadata.name, create, ended));
  }

  /** Turn of a session, with the moments on its way. */
  async tracedTurn(session: StoredSession): Promise<Ran & Moments> {
    const turn = this.#newTurn(session);
    const { name } = turn.metadata;
    let created = 0;
    let answered = 0;
    const create = async () => {
      created = performance.now();
      await this.cluster.client.create(turns, turn);
      answered = performance.now();
    };
    const running = this.turns.until(name, ({ status }) => status?.phase === 'Running');
    // If the turn does not succeed, that is the error to report.
    running.catch(() => {});
    const ran = succeeded(await this.turns.timed(name, create, ended));
    return { ...ran, answeredMs: answered - created, runningMs: (await running).at - created };
  }

  #newTurn(session: StoredSession): Turn {
    this.#count += 1;
    return newTurn(session, `${session.metadata.name}-t${this.#count}`, 'x');
  }

  /** Creates sessions and resolves once each has answered a first turn. */
  ready(...names: string[]): Promise<StoredSession[]> {
    return Promise.all(names.map((name) => this.readyOne(name)));
  }

  async readyOne(name: string, spec: object = {}): Promise<StoredSession> {
    const session = await this.cluster.client.create(sessions, newSession(this.namespace, name, spec));
    await this.turn(session);
    return session;
  }

  /** Session of one turn, from the session's creation. */
  async oneTurn(name: string, spec: object = {}): Promise<Ran> {
    const { client } = this.cluster;
    const session = newSession(this.namespace, name, { turns: 'One', input: 'x', ...spec });
    return succeeded(await this.turns.timed(name, () => client.create(sessions, session), ended));
  }

  /** Pod of a session of a class, as the class makes it. */
  podOf(ofClass: string): Promise<Stored<Pod>> {
    return firstPod(this.cluster, `of-${ofClass}`, { class: ofClass });
  }

  /** Deletes a session. */
  delete(name: string): Promise<void> {
    return this.cluster.client.delete(sessions, { namespace: this.namespace, name });
  }

  /** Waits until the session's pods are gone, while others are there. */
  podsGone(session: string): Promise<void> {
    return this.cluster.noPods(`${LABEL_SESSION}=${session}`);
  }

  /** Deletes sessions and waits until no pod is left. */
  async gone(...names: string[]): Promise<void> {
    await this.#deleteAll(names);
    await this.cluster.noPods();
  }

  /** Hundreds of requests at once would have to wait longer for their answers than the client does. */
  async #deleteAll(names: readonly string[]): Promise<void> {
    await someAtOnce(names.length, (i) => this.delete(names[i] as string));
  }

  /** Deletes every session and pool, after a failure. */
  async clear(): Promise<void> {
    const { client, namespace } = this.cluster;
    for (const { metadata } of (await client.list(sessionpools, { namespace })).items) {
      await client.delete(sessionpools, { namespace, name: metadata.name });
    }
    const names = (await client.list(sessions, { namespace })).items.map(({ metadata }) => metadata.name);
    await this.#deleteAll(names);
    await this.cluster.noPods();
  }

  async remove(): Promise<void> {
    this.turns.close();
    await this.floors.stop();
    await this.cluster.client.delete(namespaces, { name: this.namespace });
    await this.cluster.client.close();
  }
}

/** Runs a session once, which warms caches on every side. Resolves with its pod, which is gone by then. */
async function firstPod(cluster: BenchCluster, name: string, spec: object = {}): Promise<Stored<Pod>> {
  const { client, namespace } = cluster;
  const session = await client.create(sessions, newSession(namespace, name, spec));
  const create = () => client.create(turns, newTurn(session, `${name}-1`, 'x'));
  succeeded(await cluster.timed(turns, `${name}-1`, create, ended));
  const { items } = await client.list(pods, { namespace, labelSelector: `${LABEL_SESSION}=${name}` });
  const [pod] = items;
  if (!pod) throw new Error(`session ${name} has no pod`);
  await client.delete(sessions, { namespace, name });
  await cluster.noPods();
  return pod;
}
