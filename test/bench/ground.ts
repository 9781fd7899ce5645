import type { Pod } from '../../core/kube/builtin.ts';
import { namespaces, pods } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import { type Session, type StoredSession, sessions, type Turn, turns } from '../../core/resources/kinds.ts';
import { LABEL_SESSION } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { takesPods } from '../e2e/support/cluster.ts';
import { BenchCluster } from './cluster.ts';
import { newTurn } from './embedded.ts';
import { Floors } from './floors.ts';
import { Watched } from './watched.ts';

/** Agent of every session: a shell that starts a program, which answers with its input. */
const AGENT = { command: ['sh', '-c', 'cat'], input: 'Text', result: 'Text' };

export function newSession(namespace: string, name: string, spec: object = {}): Session {
  return {
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'Session',
    metadata: { namespace, name },
    spec: { agent: AGENT, ...spec },
  } as unknown as Session;
}

const ended = (turn: Turn): boolean => isTerminal(turn.status?.phase);

/** Throws unless the turn Succeeded. */
function succeeded(turn: Turn): void {
  if (turn.status?.phase !== 'Succeeded') throw new Error(`turn ${turn.metadata.name}: ${JSON.stringify(turn.status)}`);
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

  /** Makes the namespace and runs a first session there, which warms caches on every side and tells the template. */
  static async prepare(namespace: string): Promise<Ground> {
    const cluster = await BenchCluster.connect(namespace);
    const { client } = cluster;
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await takesPods(namespace);
    const session = await client.create(sessions, newSession(namespace, 'first'));
    const create = () => client.create(turns, newTurn(session, 'first-1', 'x'));
    succeeded((await cluster.timed(turns, 'first-1', create, ended)).object);
    const { items } = await client.list(pods, { namespace, labelSelector: `${LABEL_SESSION}=first` });
    const template = items[0];
    if (!template) throw new Error('the first session has no pod');
    await client.delete(sessions, { namespace, name: 'first' });
    await cluster.noPods();
    const floors = await Floors.start(cluster, template);
    return new Ground(cluster, template, floors, await Watched.open(client, turns, namespace));
  }

  /** F-spawn: the agent's command in a container like the runner's. */
  spawn(): Promise<number> {
    return this.floors.spawn(AGENT.command, 'x');
  }

  /** Turn of a session from its creation until its result is seen, in milliseconds. */
  async turn(session: StoredSession, client = this.cluster.client): Promise<number> {
    this.#count += 1;
    const name = `${session.metadata.name}-t${this.#count}`;
    const create = () => client.create(turns, newTurn(session, name, 'x'));
    const { ms, object } = await this.turns.timed(name, create, ended);
    succeeded(object);
    return ms;
  }

  /** Creates sessions and resolves once each has answered a first turn. */
  async ready(...names: string[]): Promise<StoredSession[]> {
    const { client } = this.cluster;
    return Promise.all(
      names.map(async (name) => {
        const session = await client.create(sessions, newSession(this.namespace, name));
        await this.turn(session);
        return session;
      }),
    );
  }

  /** Creates a session of one turn. Resolves with the milliseconds from its creation until the result is seen. */
  async oneTurn(name: string): Promise<number> {
    const { client } = this.cluster;
    const create = () => client.create(sessions, newSession(this.namespace, name, { turns: 'One', input: 'x' }));
    const { ms, object } = await this.turns.timed(name, create, ended);
    succeeded(object);
    return ms;
  }

  /** Deletes sessions and waits until no pod is left. */
  async gone(...names: string[]): Promise<void> {
    const { client, namespace } = this.cluster;
    await Promise.all(names.map((name) => client.delete(sessions, { namespace, name })));
    await this.cluster.noPods();
  }

  /** Deletes every session, after a failure. */
  async clear(): Promise<void> {
    const { items } = await this.cluster.client.list(sessions, { namespace: this.namespace });
    await this.gone(...items.map(({ metadata }) => metadata.name));
  }

  async remove(): Promise<void> {
    this.turns.close();
    await this.floors.stop();
    await this.cluster.client.delete(namespaces, { name: this.namespace });
    await this.cluster.client.close();
  }
}
