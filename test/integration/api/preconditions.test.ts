import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Cli } from '../../../cli/cli.ts';
import type { Backend } from '../../../cli/cluster/backend.ts';
import { kubernetesBackend } from '../../../cli/connect/kubernetes-backend.ts';
import { serverBackend } from '../../../cli/server/backend.ts';
import { ServerClient } from '../../../cli/server/client.ts';
import { ServerObjects } from '../../../cli/server/objects.ts';
import { ownedBy, type StoredSession, type StoredTurn, sessions, turns } from '../../../core/resources/kinds.ts';
import { systemClock, systemRandom } from '../../../core/system.ts';
import { ApiCluster, EVERYTHING } from './support.ts';

const SESSIONS = '/v1/namespaces/default/sessions';
const OTHER = '7f0c6f4e-4c39-4c4e-9f4a-1f7d0f0b9c11';

/** No controller runs here. */
describe('a change of the object with one UID', () => {
  let api: ApiCluster;
  let token: string;
  let client: ServerClient;
  let made = 0;
  beforeAll(async () => {
    api = await ApiCluster.start();
    ({ token } = await api.user(EVERYTHING));
    const connection = {
      server: api.url,
      tls: {},
      headers: () => ({ authorization: `Bearer ${token}` }),
      namespace: 'default',
    };
    client = new ServerClient(connection, { clock: systemClock });
  });
  afterAll(async () => {
    await client.close();
    await api.close();
  });

  /** Creates a session with a turn. */
  const create = async (): Promise<{ session: StoredSession; turn: StoredTurn }> => {
    const name = `one-${++made}`;
    const kube = api.cluster.client;
    const session = await kube.create(sessions, { metadata: { name, namespace: 'default' }, spec: {} } as never);
    const metadata = { name: `${name}-1`, namespace: 'default', ownerReferences: [ownedBy(session)] };
    const turn = await kube.create(turns, { metadata, spec: { session: name, input: 1 } } as never);
    return { session, turn };
  };
  /** Versions of the session and its turn, and the number of turns. */
  const now = async ({ session, turn }: { session: StoredSession; turn: StoredTurn }): Promise<unknown[]> => {
    const kube = api.cluster.client;
    const { items } = await kube.list(turns, {
      namespace: 'default',
      fieldSelector: `spec.session=${session.metadata.name}`,
    });
    const [a, b] = [await kube.get(sessions, session.metadata), await kube.get(turns, turn.metadata)];
    return [a.metadata.resourceVersion, b.metadata.resourceVersion, items.length];
  };
  const remade = <T extends StoredSession | StoredTurn>(object: T): T => ({
    ...object,
    metadata: { ...object.metadata, uid: OTHER },
  });

  const changes: [method: string, path: string, kind: 'Session' | 'Turn', body?: object][] = [
    ['POST', '/suspend', 'Session', {}],
    ['POST', '/suspend', 'Session', { hold: true }],
    ['POST', '/restart', 'Session', {}],
    ['POST', '/resume', 'Session', {}],
    ['POST', '/touch', 'Session', {}],
    ['POST', '/turns', 'Session', { spec: { input: 2 } }],
    ['POST', '/turns/TURN/cancel', 'Turn', {}],
    ['DELETE', '', 'Session'],
  ];
  for (const [method, path, kind, body] of changes) {
    test(`over HTTP is done, and is refused where another has the name: ${method} ${path}`, async () => {
      const both = await create();
      const { session, turn } = both;
      const { name, uid } = kind === 'Turn' ? turn.metadata : session.metadata;
      const url = `${SESSIONS}/${session.metadata.name}${path.replace('TURN', turn.metadata.name)}`;
      const ask = { token, ...(body ? { body } : {}) };
      const before = await now(both);
      const refused = await api.call(method, `${url}?uid=${OTHER}`, ask);
      assert.deepEqual([refused.status, refused.problem.code], [409, 'UIDMismatch'], refused.text);
      assert.equal(
        refused.problem.detail,
        `${kind} "${name}" has the UID ${uid}, not ${OTHER}: the one that you mean was deleted, and another has its name. Nothing was changed.`,
      );
      assert.deepEqual(await now(both), before);
      const none = await api.call(method, `${url}?uid=`, ask);
      assert.deepEqual([none.status, none.problem.errors?.[0]?.field], [400, 'uid'], none.text);
      const done = await api.call(method, `${url}?uid=${uid}`, ask);
      assert.ok(done.status < 300, done.text);
    });
  }

  test('in the body of a deletion, as Kubernetes has it, is refused and not passed over', async () => {
    const both = await create();
    const url = `${SESSIONS}/${both.session.metadata.name}`;
    const refused = await api.call('DELETE', url, { token, body: { preconditions: { uid: OTHER } } });
    assert.deepEqual([refused.status, refused.problem.code], [422, 'Invalid'], refused.text);
    assert.match(refused.problem.detail, /takes no body\. .*\?uid=/);
    assert.equal((await api.call('DELETE', url, { token, body: {} })).status, 204);
  });

  const backends: [string, () => Backend][] = [
    [
      'the HTTP API',
      () => serverBackend(client, new ServerObjects(client), { namespace: 'default' } as never, {} as Cli),
    ],
    [
      'a kubeconfig',
      () =>
        kubernetesBackend(() => ({ namespace: 'default' }) as never, api.cluster.client, {
          random: systemRandom,
        } as Cli),
    ],
  ];
  for (const [by, backend] of backends) {
    test(`by the command line through ${by} spares another that has the name by now`, async () => {
      const both = await create();
      const session = remade(both.session);
      const signal = new AbortController().signal;
      const before = await now(both);
      for (const change of [
        () => backend().suspend(session, false, signal),
        () => backend().suspend(session, true, signal),
        () => backend().restart(session, signal),
        () => backend().resume(session, signal),
        () => backend().cancelTurn(remade(both.turn), signal),
      ]) {
        await assert.rejects(change, {
          code: 404,
          message: /was deleted, and another has its name; that one is kept$/,
        });
      }
      await assert.rejects(backend().deleteSession(session, {}), {
        code: 404,
        message: `session "${session.metadata.name}" was deleted, and another has its name; that one is kept`,
      });
      assert.deepEqual(await now(both), before);
      await backend().suspend(both.session, false, signal);
      await backend().cancelTurn(both.turn, signal);
      await backend().deleteSession(both.session, {});
      await assert.rejects(api.cluster.client.get(sessions, both.session.metadata), { code: 404 });
    });
  }
});
