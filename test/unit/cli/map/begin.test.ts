import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Cli } from '../../../../cli/cli.ts';
import type { KubeCluster } from '../../../../cli/cluster/cluster.ts';
import { begin } from '../../../../cli/map/begin.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { DeleteOptions, KubeObject, ObjectRef, Resource, Stored } from '../../../../core/kube/types.ts';
import { type StoredTurn, sessions, turns } from '../../../../core/resources/kinds.ts';
import { firstTurnName, LABEL_MAP } from '../../../../core/resources/names.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const NAME = 'm-1';
const TURN = firstTurnName(NAME);
const labels = { [LABEL_MAP]: 'm' };

/** An API server with sessions and turns, and what happens before each request. */
class Server {
  readonly objects = new Map<string, Stored>();
  /** Sessions that were deleted after something of theirs had been begun. */
  readonly lost: string[] = [];
  #version = 0;

  put(resource: Resource, object: KubeObject): Stored {
    const key = `${resource.plural}/${object.metadata.name}`;
    if (this.objects.has(key)) throw new ApiError({ code: 409, reason: 'AlreadyExists', message: `${key} exists` });
    const version = ++this.#version;
    const metadata = { ...object.metadata, uid: `uid-${version}`, resourceVersion: `${version}` };
    const stored = { ...object, kind: resource.kind, metadata } as Stored;
    this.objects.set(key, stored);
    return stored;
  }

  /** The controller takes up a session: its status is written before anything runs. */
  takeUp(status: object = { phase: 'Starting', incarnation: 1 }): void {
    const key = `sessions/${NAME}`;
    const session = this.objects.get(key) as Stored;
    const metadata = { ...session.metadata, resourceVersion: `${++this.#version}` };
    this.objects.set(key, { ...session, metadata, status } as Stored);
  }

  /** A process of `berth map`. `meet` is called before each of its requests. */
  process(clock: VirtualClock, meet: (request: string) => void | Promise<void> = () => {}) {
    const found = (resource: Resource, { name }: ObjectRef) => {
      const object = this.objects.get(`${resource.plural}/${name}`);
      if (!object) throw new ApiError({ code: 404, reason: 'NotFound', message: `no ${name}`, details: { name } });
      return object;
    };
    const api = {
      get: async (resource: Resource, ref: ObjectRef) => {
        await meet(`GET ${resource.plural}`);
        return found(resource, ref);
      },
      delete: async (resource: Resource, ref: ObjectRef, { uid, resourceVersion }: DeleteOptions) => {
        await meet(`DELETE ${resource.plural}`);
        const { metadata, status } = found(resource, ref) as Stored & { status?: { phase?: string } };
        const isOther = uid !== undefined && uid !== metadata.uid;
        if (isOther || (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)) {
          throw new ApiError({ code: 409, reason: 'Conflict', message: 'changed' });
        }
        if (resource === sessions && status && status.phase !== 'Finished') this.lost.push(metadata.uid);
        this.objects.delete(`${resource.plural}/${ref.name}`);
      },
      raw: async (_method: string, path: string, { body }: { body: KubeObject }) => {
        const resource = path.endsWith('/turns') ? turns : sessions;
        await meet(`POST ${resource.plural}`);
        return this.put(resource as Resource, body);
      },
    };
    const cluster = { api, namespace: 'default', author: async () => ({}) } as unknown as KubeCluster;
    const cli = { clock, interrupted: new AbortController().signal, say: () => {} } as unknown as Cli;
    return (before?: StoredTurn) =>
      begin({ name: NAME, line: 1, input: 1 }, before, { spec: {} as never, map: 'm', flags: {} }, cluster, cli);
  }

  /** A session with its turn, which has failed. */
  failed(): StoredTurn {
    const { metadata } = this.put(sessions, { metadata: { name: NAME, namespace: 'default', labels } });
    this.takeUp({ phase: 'Finished' });
    const ownerReferences = [{ apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: NAME, uid: metadata.uid }];
    const turn = {
      metadata: { name: TURN, namespace: 'default', labels, ownerReferences },
      status: { phase: 'Failed' },
    };
    return this.put(turns, turn as KubeObject) as StoredTurn;
  }
}

/** Advances the clock until the work is done. */
async function done<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let isDone = false;
  const ended = work.finally(() => {
    isDone = true;
  });
  ended.catch(() => undefined);
  for (let i = 0; i < 100 && !isDone; i++) await clock.advance(250);
  return ended;
}

describe('two processes that map one file begin an item once:', () => {
  test('a session whose turn another is about to create is left to it', async () => {
    const clock = new VirtualClock();
    const server = new Server();
    const held = Promise.withResolvers<void>();
    const first = server.process(clock, (request) => (request === 'POST turns' ? held.promise : undefined))();
    await clock.advance(1);
    let tries = 0;
    const second = server.process(clock, async (request) => {
      if (request !== 'POST sessions' || ++tries < 2) return;
      held.resolve();
      await first;
    })();
    await clock.advance(1_000);
    held.resolve();
    const [a, b] = await Promise.all([done(clock, first), done(clock, second)]);
    assert.equal(b.turn.metadata.uid, a.turn.metadata.uid);
    assert.deepEqual([b.uid, server.objects.get(`sessions/${NAME}`)?.metadata.uid], [a.uid, a.uid]);
  });

  test('a session that was taken up after the look at it is not deleted', async () => {
    const clock = new VirtualClock();
    const server = new Server();
    const { uid } = server.put(sessions, { metadata: { name: NAME, namespace: 'default', labels } }).metadata;
    let isLate = true;
    const work = server.process(clock, (request) => {
      if (request !== 'DELETE sessions' || !isLate) return;
      isLate = false;
      const ownerReferences = [{ apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: NAME, uid }];
      server.put(turns, { metadata: { name: TURN, namespace: 'default', labels, ownerReferences } });
      server.takeUp();
    })();
    const begun = await done(clock, work);
    assert.deepEqual([begun.uid, server.lost], [uid, []]);
  });

  test('one that has failed is run again by the first, and the second waits for it, at whatever request they meet', async () => {
    for (const at of ['GET sessions', 'GET turns', 'DELETE sessions', 'DELETE turns']) {
      const clock = new VirtualClock();
      const server = new Server();
      const before = server.failed();
      let isFirst = true;
      let a: Awaited<ReturnType<typeof begin>> | undefined;
      const b = await done(
        clock,
        server.process(clock, async (request) => {
          if (request !== at || !isFirst) return;
          isFirst = false;
          a = await server.process(clock)(before);
          server.takeUp();
        })(before),
      );
      assert.equal(b.turn.metadata.uid, a?.turn.metadata.uid, at);
      assert.notEqual(b.turn.metadata.uid, before.metadata.uid);
      assert.deepEqual([b.uid, server.lost], [a?.uid, []], at);
    }
  });
});

test('what a killed process left without a turn is begun anew', async () => {
  const clock = new VirtualClock();
  const server = new Server();
  const { uid } = server.put(sessions, { metadata: { name: NAME, namespace: 'default', labels } }).metadata;
  const begun = await done(clock, server.process(clock)());
  assert.notEqual(begun.uid, uid);
  assert.equal(begun.turn.metadata.ownerReferences?.[0]?.uid, begun.uid);
});
