import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { pythonAgent } from '../../support/installation.ts';
import { Follower } from './follower.ts';
import { ApiCluster, BERTH_API, EVERYTHING } from './support.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..', '..');
const FOLLOWERS = 20;
/** More than a connection's buffers hold, and less than a log may have before it is rotated: 9 MB. */
const LARGE = { turns: 24, events: 25, bytes: 15_000 };

describe('followers of one session', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'berth-shared-log-'));
  /** Tells as many events of that size as its input says, with a line after each, and ends when told to. */
  const agent = pythonAgent(`
sys.path.insert(0, '${join(CHECKOUT, 'clients', 'python')}')
import berth_agent
turn = request['turn']['name']
for i in range(request['input']['count']):
    berth_agent.event({'turn': turn, 'i': i, 'text': 'x' * request['input']['bytes']})
    print(turn, i, flush=True)
while not os.path.exists('${scratch}/' + turn): time.sleep(0.02)
answer(None)
`);
  let api: ApiCluster;
  let token: string;
  const followers: Follower[] = [];
  /** Pods whose log the API asked the cluster for, once for each request. */
  const asked: string[] = [];
  const path = (session: string) => `${api.url}/v1/namespaces/default/sessions/${session}/events`;
  const follow = async (session: string, lastEventId?: string, query = '') => {
    const follower = await Follower.open(path(session) + query, token, lastEventId);
    followers.push(follower);
    return follower;
  };
  const open = (session: string, query = '', count = FOLLOWERS) =>
    Promise.all(Array.from({ length: count }, () => follow(session, undefined, query)));
  /** Gives the session a turn that tells events and goes on. */
  const tell = (session: string, turn: string, count: number, bytes = 10) =>
    api.cluster.turn(session, turn, { count, bytes });
  const end = async (turn: string) => {
    writeFileSync(join(scratch, turn), '');
    await api.cluster.ended(turn);
  };
  /** A session with a pod, whose first turn told one event. */
  const begin = async (session: string) => {
    await api.cluster.create(session, { agent });
    await tell(session, `${session}-0`, 1);
    await end(`${session}-0`);
    return (await api.cluster.session(session)).status?.podName as string;
  };
  const toldOf = (follower: Follower, turn: string) =>
    follower.of('agent').flatMap(({ data }) => (data.turn === turn ? [data.event.i as number] : []));
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
  const allHave = (all: Follower[], turn: string, count: number) =>
    eventually(() => all.every((follower) => toldOf(follower, turn).includes(count - 1)), {
      what: `all have the last event of ${turn}`,
    });

  beforeAll(async () => {
    const env = { BERTH_API_MAX_STREAMS: '1000', BERTH_API_CALLER_SHARE: '100', BERTH_API_STALL_TIMEOUT: '10m' };
    api = await ApiCluster.start(env);
    api.cluster.startController();
    ({ token } = await api.user(EVERYTHING));
    const isLog = ({ resource, subresource, user, name }: RequestFacts) => {
      if (resource === 'pods' && subresource === 'log' && user === BERTH_API) asked.push(name as string);
      return false;
    };
    api.cluster.server.faults.delayNext(isLog, 0);
  });
  afterAll(async () => {
    for (const follower of followers) follower.close();
    await api.close();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
  });

  test('cost the cluster one read of the log, also those who come late, resume or want lines', async () => {
    const pod = await begin('shared');
    const all = [...(await open('shared')), ...(await open('shared', '?logs=true'))];
    await tell('shared', 'shared-1', 30);
    await allHave(all, 'shared-1', 30);
    const [first, withLines] = [all[0] as Follower, all[FOLLOWERS] as Follower];
    const tenth = first.of('agent').find(({ data }) => data.turn === 'shared-1' && data.event.i === 9);
    const resumed = await follow('shared', tenth?.id);
    const late = await follow('shared');
    const whole = await follow('shared', '0.0.0.0');
    await end('shared-1');
    await tell('shared', 'shared-2', 30);
    const everyone = [...all, resumed, late, whole];
    await allHave(everyone, 'shared-2', 30);
    for (const follower of everyone) {
      const isResumed = follower === resumed;
      assert.deepEqual(toldOf(follower, 'shared-1'), isResumed ? numbers(30).slice(10) : numbers(30));
      assert.deepEqual(toldOf(follower, 'shared-2'), numbers(30));
      assert.deepEqual(follower.of('dropped'), []);
    }
    assert.deepEqual(toldOf(whole, 'shared-0'), [0]);
    await eventually(() => withLines.of('log').some(({ data }) => data.text === 'shared-2 29'), { what: 'the lines' });
    assert.equal(first.of('log').length, 0);
    assert.deepEqual(
      asked.filter((name) => name === pod),
      [pod],
    );
    await end('shared-2');
  });

  test('are not held up by one that stops reading, which gets the rest once it reads again', async () => {
    const pod = await begin('stops');
    const [stops, ...others] = (await open('stops', '', 3)) as [Follower, Follower, Follower];
    const resume = stops.pause();
    const turns = numbers(LARGE.turns).map((i) => `stops-${i + 1}`);
    for (const turn of turns) {
      // A runner drops text that is not taken in time: each turn's events are read before the next begins.
      await tell('stops', turn, LARGE.events, LARGE.bytes);
      await allHave(others, turn, LARGE.events);
      await end(turn);
    }
    assert.ok(toldOf(stops, turns.at(-1) as string).length < LARGE.events);
    const reads = () => asked.filter((name) => name === pod).length;
    assert.equal(reads(), 1);
    resume();
    await allHave([stops], turns.at(-1) as string, LARGE.events);
    assert.ok(reads() > 1, 'it read the log for itself, as what it wanted was not kept any more');
    const late = await follow('stops', '0.0.0.0');
    await allHave([late], turns.at(-1) as string, LARGE.events);
    for (const follower of [stops, ...others, late]) {
      for (const turn of turns) assert.deepEqual(toldOf(follower, turn), numbers(LARGE.events));
    }
  });

  test('all go on with the session’s next pod', async () => {
    const first = await begin('sleeps');
    const all = await open('sleeps');
    await tell('sleeps', 'sleeps-1', 5);
    await allHave(all, 'sleeps-1', 5);
    await end('sleeps-1');
    await api.cluster.patch('sleeps', { suspendRequest: 'x' });
    await api.cluster.until('sleeps', 'suspended', ({ status }) => status?.podName === undefined);
    await tell('sleeps', 'sleeps-2', 5);
    await allHave(all, 'sleeps-2', 5);
    const second = (await api.cluster.session('sleeps')).status?.podName;
    assert.notEqual(second, first);
    for (const follower of all) {
      for (const turn of ['sleeps-1', 'sleeps-2']) assert.deepEqual(toldOf(follower, turn), numbers(5));
      assert.deepEqual(follower.of('agent').at(-1)?.id.split('.').slice(2, 4), ['2', '5']);
    }
    await end('sleeps-2');
  });

  test('all go on when the API’s connections to the cluster are cut, and one that leaves takes none with it', async () => {
    const pod = await begin('cut');
    const all = await open('cut');
    await tell('cut', 'cut-1', 20);
    await allHave(all, 'cut-1', 20);
    await end('cut-1');
    await api.cut();
    all.shift()?.close();
    await tell('cut', 'cut-2', 20);
    await allHave(all, 'cut-2', 20);
    for (const follower of all) {
      for (const turn of ['cut-1', 'cut-2']) assert.deepEqual(toldOf(follower, turn), numbers(20));
    }
    const reads = asked.filter((name) => name === pod).length;
    assert.ok(reads > 1 && reads < FOLLOWERS, `${reads} reads`);
    await end('cut-2');
  });

  test('are each asked for their rights', async () => {
    const pod = await begin('guarded');
    const [follower] = await open('guarded');
    await tell('guarded', 'guarded-1', 1);
    await allHave([follower as Follower], 'guarded-1', 1);
    for (const rules of [
      [],
      [{ verbs: ['get'], resources: ['sessions'] }],
      [{ verbs: ['list'], resources: ['turns'] }],
    ]) {
      const stranger = await api.user(rules);
      const headers = { 'last-event-id': '0.0.0.0' };
      const answer = await api.call('GET', '/v1/namespaces/default/sessions/guarded/events', {
        token: stranger.token,
        headers,
        // One who is let in is not answered to the end.
        signal: AbortSignal.timeout(30_000),
      });
      assert.deepEqual([answer.status, answer.problem.code], [403, 'Forbidden']);
    }
    assert.equal(asked.filter((name) => name === pod).length, 1);
    await end('guarded-1');
  });
});
