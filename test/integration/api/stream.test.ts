import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventData } from '../../../core/follow/events.ts';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { pythonAgent } from '../../support/installation.ts';
import { type Event, Follower } from './follower.ts';
import { ApiCluster, EVERYTHING } from './support.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..', '..');

describe('the stream of events', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'berth-stream-'));
  /** Prints a line, tells an event, asks if its input says so, and ends when told to. */
  const agent = pythonAgent(`
sys.path.insert(0, '${join(CHECKOUT, 'clients', 'python')}')
import berth_agent
turn = request['turn']['name']
print('line of', turn, flush=True)
berth_agent.event({'turn': turn})
if request['input'] == 'ask': berth_agent.approve('May I?')
while not os.path.exists('${scratch}/' + turn): time.sleep(0.02)
answer(turn)
`);
  let api: ApiCluster;
  let token: string;
  const followers: Follower[] = [];
  const follow = async (path: string, lastEventId?: string) => {
    const follower = await Follower.open(`${api.url}/v1/namespaces/default/${path}`, token, lastEventId);
    followers.push(follower);
    return follower;
  };
  const end = async (turn: string) => {
    if (!existsSync(join(scratch, turn))) writeFileSync(join(scratch, turn), '');
    await api.cluster.ended(turn);
  };
  const run = async (session: string, turn: string, input: unknown = null) => {
    writeFileSync(join(scratch, turn), '');
    await api.cluster.turn(session, turn, input);
    await api.cluster.ended(turn);
  };
  beforeAll(async () => {
    api = await ApiCluster.start({ BERTH_API_MAX_STREAMS: '1000', BERTH_API_CALLER_SHARE: '100' });
    api.cluster.startController();
    ({ token } = await api.user([...EVERYTHING, { verbs: ['create'], resources: ['approvals'] }]));
  });
  afterAll(async () => {
    for (const follower of followers) follower.close();
    await api.close();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
  });

  test('tells the life of a session from its first turn to its deletion, each event as the schema of its type says', async () => {
    await api.cluster.create('life', { agent });
    const stream = await follow('sessions/life/events?logs=true');
    await api.cluster.turn('life', 'life-1', 'ask');
    const question = await eventually(() => stream.of('approval')[0]?.data, { what: 'the question' });
    assert.deepEqual([question.turn, question.prompt, question.decided], ['life-1', 'May I?', undefined]);
    const path = '/v1/namespaces/default/sessions/life/turns/life-1/approvals';
    const body = { spec: { requestId: question.requestId, decision: 'Approve' } };
    const decided = await api.call('POST', path, { token, body });
    assert.equal(decided.status, 201, decided.text);
    await eventually(() => stream.of('approval').some(({ data }) => data.decided?.decision === 'Approve'), {
      what: 'the decision',
    });
    await end('life-1');
    await eventually(() => stream.phases('life-1').at(-1) === 'Succeeded', { what: 'the end of the turn' });
    await eventually(() => stream.of('log').some(({ data }) => data.text === 'line of life-1'), { what: 'the line' });
    await eventually(() => stream.of('agent').length > 0 && stream.of('usage').length > 0, {
      what: 'its event and its usage',
    });
    assert.deepEqual(stream.of('agent')[0]?.data.event, { turn: 'life-1' });
    assert.deepEqual(stream.of('usage')[0]?.data.turn, 'life-1');
    await api.cluster.delete('life');
    await eventually(() => stream.ended, { what: 'the end of the stream' });
    const last = stream.events.at(-1);
    assert.deepEqual([last?.type, last?.data.turn], ['deleted', undefined]);
    for (const { type, data } of stream.events) {
      assert.equal(eventData[type as keyof typeof eventData].safeParse(data).error, undefined, type);
      assert.equal(data.session, 'life');
    }
  });

  test('tells what a turn has left before it tells its end, also to who comes later', async () => {
    const script = 'cd "$BERTH_OUTPUT_DIR"; printf x > b; ln -s / l; cat';
    const session = { agent: { command: ['sh', '-c', script], input: 'Text', result: 'Text' } } as const;
    await api.cluster.create('leaving', session as never);
    const stream = await follow('sessions/leaving/events');
    await run('leaving', 'leaving-1', 'x');
    await eventually(() => stream.phases('leaving-1').at(-1) === 'Succeeded', { what: 'the end of the turn' });
    const later = await follow('sessions/leaving/events', '0.0.0.0');
    await eventually(() => later.phases('leaving-1').at(-1) === 'Succeeded', { what: 'the end of the turn' });
    for (const { events } of [stream, later]) {
      const at = events.findIndex(({ type }) => type === 'artifacts');
      const { artifacts, leftOut } = events[at]?.data ?? {};
      assert.deepEqual(
        [artifacts.map(({ name, bytes, ref }: Record<string, unknown>) => [name, bytes, ref]), leftOut],
        [[['b', 1, undefined]], { count: 1, entries: [{ name: 'l', reason: 'Symlink' }] }],
      );
      assert.ok(at < events.findIndex(({ type, data }) => type === 'turn' && data.phase === 'Succeeded'));
      assert.equal(events.filter(({ type }) => type === 'artifacts').length, 1, 'it is told once');
    }
  });

  test('goes on after any of its events, so that every end of a turn is told whatever cuts it', async () => {
    await api.cluster.create('cut', { agent });
    const whole = await follow('sessions/cut/events', '0.0.0.0');
    await run('cut', 'cut-1');
    const parts: Event[] = [];
    let lastEventId = '0.0.0.0';
    for (const turn of ['cut-2', 'cut-3', 'cut-4']) {
      const part = await follow('sessions/cut/events', lastEventId);
      await eventually(() => part.events.length > 0, { what: 'an event' });
      part.close();
      // Only the first counts, as if all that came after it had been lost.
      parts.push(part.events[0] as Event);
      lastEventId = part.events[0]?.id as string;
      await run('cut', turn);
    }
    const rest = await follow('sessions/cut/events', lastEventId);
    await eventually(() => rest.phases('cut-4').includes('Succeeded'), { what: 'the last end' });
    // The log is read beside the states.
    await eventually(() => rest.of('agent').some(({ data }) => data.turn === 'cut-4'), { what: 'the last event' });
    const told = [...parts, ...rest.events];
    for (const turn of ['cut-1', 'cut-2', 'cut-3', 'cut-4']) {
      assert.ok(
        told.some(({ type, data }) => type === 'turn' && data.turn === turn && data.phase === 'Succeeded'),
        turn,
      );
      const events = told.filter(({ type, data }) => type === 'agent' && data.turn === turn);
      assert.equal(events.length, 1, `the event of ${turn} comes once`);
    }
    await eventually(() => whole.phases('cut-4').includes('Succeeded'), { what: 'the same without a cut' });
  });

  test('goes on over lost watches and a lost history of the cluster, and tells nothing twice that has not changed', async () => {
    await api.cluster.create('lost', { agent });
    const stream = await follow('sessions/lost/events');
    await run('lost', 'lost-1');
    api.cluster.server.faults.dropWatches();
    api.cluster.server.faults.compact();
    await run('lost', 'lost-2');
    await eventually(() => stream.phases('lost-2').includes('Succeeded'), { what: 'the end after the cut' });
    const ends = stream.of('turn').filter(({ data }) => data.phase === 'Succeeded');
    assert.deepEqual(
      ends.map(({ data }) => data.turn),
      ['lost-1', 'lost-2'],
    );
  });

  test('of a namespace tells all its sessions and turns, and 200 followers cost the cluster one watch of each', async () => {
    let watches = 0;
    const counts = ({ verb, user, resource }: RequestFacts) => {
      if (verb === 'watch' && user.endsWith('berth-api') && (resource === 'sessions' || resource === 'turns'))
        watches++;
      return false;
    };
    const other = await ApiCluster.start({ BERTH_API_MAX_STREAMS: '1000', BERTH_API_CALLER_SHARE: '100' });
    try {
      other.cluster.startController();
      const { token: theirs } = await other.user(EVERYTHING);
      other.cluster.server.faults.delayNext(counts, 0);
      const url = `${other.url}/v1/namespaces/default/events`;
      const all = await Promise.all(Array.from({ length: 200 }, () => Follower.open(url, theirs)));
      followers.push(...all);
      await other.cluster.create('many', { agent });
      await other.cluster.create('more', { agent });
      for (const session of ['many', 'more']) {
        writeFileSync(join(scratch, `${session}-1`), '');
        await other.cluster.turn(session, `${session}-1`, null);
      }
      for (const session of ['many', 'more']) {
        await other.cluster.ended(`${session}-1`);
        const has = (stream: Follower) => stream.phases(`${session}-1`).includes('Succeeded');
        await eventually(() => all.every(has), { what: `all followers have the end of ${session}-1` });
      }
      assert.ok(all.every((stream) => stream.of('agent').length === 0));
      assert.equal(watches, 2);
    } finally {
      await other.close();
    }
  });

  test('begins with what is there, and with all that is kept after an id of zeros or of another server', async () => {
    await api.cluster.create('there', { agent });
    await run('there', 'there-1');
    await api.cluster.turn('there', 'there-2', null);
    await api.cluster.turnUntil('there-2', 'runs', ({ status }) => status?.phase === 'Running');
    const turns = (stream: Follower) => [...new Set(stream.of('turn').map(({ data }) => data.turn as string))];
    const present = await follow('sessions/there/events');
    await eventually(() => present.of('turn').length > 0 && present.of('session').length > 0, {
      what: 'the session and the turn that runs',
    });
    assert.deepEqual([turns(present), present.of('session')[0]?.data.session], [['there-2'], 'there']);
    for (const id of ['0.0.0.0', '999999999.999999999.7.1', '999999999.999999999.1.9']) {
      const kept = await follow('sessions/there/events', id);
      await eventually(() => turns(kept).length === 2, { what: 'both turns' });
      await eventually(() => kept.of('agent').length === 2, { what: 'both events' });
    }
    await end('there-2');
  });

  test('goes on after the deletion of a session, seen or not, with everything of the next one of its name', async () => {
    await api.cluster.create('again', { agent });
    const first = await follow('sessions/again/events?logs=true', '0.0.0.0');
    for (const turn of ['again-1', 'again-2']) await run('again', turn);
    await eventually(() => first.of('agent').length === 2, { what: 'both events' });
    await api.cluster.delete('again');
    await eventually(() => first.ended, { what: 'the end of the stream' });
    const last = first.events.at(-1) as Event;
    assert.deepEqual([last.type, last.data.turn], ['deleted', undefined]);
    await api.cluster.create('again', { agent });
    await run('again', 'again-3');
    for (const { id } of [last, first.of('agent').at(-1) as Event]) {
      const next = await follow('sessions/again/events?logs=true', id);
      await eventually(() => next.of('agent').some(({ data }) => data.turn === 'again-3'), { what: 'its first event' });
      await eventually(() => next.of('log').some(({ data }) => data.text === 'line of again-3'), { what: 'its line' });
    }
  });

  test('refuses an id that is none, and a caller without the rights', async () => {
    await api.cluster.create('mine', { agent });
    const session = '/v1/namespaces/default/sessions/mine/events';
    const namespace = '/v1/namespaces/default/events';
    for (const [path, id] of [
      [session, '3.17'],
      [session, '1.2.3.x'],
      [session, '-1.0.0.0'],
      [namespace, '1.2.3.4'],
      [namespace, '1.2 '.repeat(99)],
    ] as const) {
      const { problem } = await api.call('GET', path, { token, headers: { 'last-event-id': id } });
      assert.deepEqual([problem.code, problem.errors?.[0]?.field], ['InvalidParameter', 'Last-Event-ID'], id);
    }
    const stranger = await api.user([{ verbs: ['get', 'list'], resources: ['turns'] }]);
    for (const path of [session, namespace]) {
      const { problem } = await api.call('GET', path, { token: stranger.token });
      assert.equal(problem.code, 'Forbidden', path);
    }
    const missing = await api.call('GET', session.replace('mine', 'none'), { token });
    assert.equal(missing.problem.code, 'NotFound');
  });
});
