import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type SessionPool, sessionpools, sessions } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { Follower } from './follower.ts';
import { ApiCluster, EVERYTHING } from './support.ts';

describe('followers of sessions that have pods of one pool', () => {
  let api: ApiCluster;
  let token: string;
  const followers: Follower[] = [];
  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    ({ token } = await api.user(EVERYTHING));
    const pool = { metadata: { namespace: 'default', name: 'default' }, spec: { class: 'default', replicas: 2 } };
    await api.cluster.client.create(sessionpools, pool as SessionPool);
  });
  afterAll(async () => {
    for (const follower of followers) follower.close();
    await api?.close();
  });

  const follow = async (session: string) => {
    const path = `/v1/namespaces/default/sessions/${session}/events?logs=true`;
    const follower = await Follower.open(api.url + path, token);
    followers.push(follower);
    return follower;
  };
  /** Turns that have printed the lines which the follower was told. */
  const linesOf = (follower: Follower) =>
    follower.of('log').map(({ data }) => /"turn":\{"name":"([^"]+)"/.exec(data.text)?.[1] ?? data.text);
  /** Prints its request, which names its turn. */
  const agent = { command: ['sh', '-c', 'cat >&2; echo ok'], result: 'Text' as const };

  test('are told the lines of their session alone, of every pod that it has', async () => {
    const woken = 'woken';
    const run = async (session: string, turn: string) => {
      await api.cluster.turn(session, turn, null);
      await api.cluster.ended(turn);
    };
    await api.cluster.create(woken, { agent });
    const told = new Map([[woken, await follow(woken)]]);
    const wanted = new Map([[woken, [] as string[]]]);
    for (let round = 0; round < 3; round++) {
      await run(woken, `woken-${round}`);
      wanted.get(woken)?.push(`woken-${round}`);
      await api.cluster.client.patch(sessions, { namespace: 'default', name: woken }, { spec: { suspend: true } });
      await eventually(async () => !(await api.cluster.session(woken)).status?.podName, { what: 'it is suspended' });
      // Others take the pods that come and go meanwhile.
      const others = [0, 1].map((i) => `other-${round}-${i}`);
      await Promise.all(
        others.map(async (name) => {
          await api.cluster.create(name, { agent });
          const follower = await follow(name);
          told.set(name, follower);
          wanted.set(name, [`${name}-turn`]);
          await run(name, `${name}-turn`);
          await eventually(() => linesOf(follower).length > 0, { what: `a line of ${name}` });
          await api.cluster.client.delete(sessions, { namespace: 'default', name });
        }),
      );
      await api.cluster.client.patch(sessions, { namespace: 'default', name: woken }, { spec: { suspend: false } });
    }
    for (const [session, lines] of wanted) {
      const follower = told.get(session) as Follower;
      await eventually(() => linesOf(follower).length >= lines.length, { what: `the lines of ${session}` });
    }
    for (const [session, lines] of wanted) assert.deepEqual(linesOf(told.get(session) as Follower), lines, session);
  });
});
