import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Link } from '../../../controller/link/link.ts';
import { silentLogger } from '../../../core/system.ts';
import { PodRunner } from '../../support/pod-runner.ts';
import { seededRandom } from '../../support/random.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const KEY = Buffer.alloc(32, 7);
const BIND = {
  protocol: 1,
  session: { name: 'notes', namespace: 'team', uid: 'session-1' },
  incarnation: 1,
  state: { keyId: 'k', key: KEY.toString('base64') },
  agent: { driver: 'Command', command: ['agent'], args: [], env: [], input: 'Stdin', result: 'Json' },
} as const;
const TURN = { turn: 'turn-1', name: 'a', index: 1, attempt: 1, input: null, timeoutMs: 60_000 };

function setUp(change: { session?: string; epoch?: number; pod?: PodRunner; clock?: VirtualClock } = {}) {
  const clock = change.clock ?? new VirtualClock();
  const random = seededRandom();
  const pod = change.pod ?? new PodRunner(clock, random);
  const later: number[] = [];
  let number = 0;
  const link = new Link({
    api: pod,
    clock,
    random,
    log: silentLogger,
    pod: { namespace: 'team', name: 'pod', uid: 'pod-1' },
    session: change.session ?? 'session-1',
    incarnation: 1,
    keys: { current: { id: 'k', key: KEY }, byId: new Map([['k', KEY]]) },
    epoch: () => change.epoch ?? 5,
    nextNumber: () => ++number,
    onChange: () => {},
    onLaterEpoch: (epoch) => later.push(epoch),
  });
  link.open({ scheduled: true, running: false });
  return { clock, pod, link, later };
}

async function bound(change: Parameters<typeof setUp>[0] = {}) {
  const parts = setUp(change);
  await parts.clock.advance(200);
  parts.link.bind({ ...BIND, agent: { ...BIND.agent, command: ['agent'], args: [], env: [] } });
  await parts.clock.advance(10);
  assert.equal(parts.link.view.phase, 'Bound');
  return parts;
}

test('the first attach is tried 120 ms after the pod was scheduled', async () => {
  const { clock, link } = setUp();
  await clock.advance(119);
  assert.equal(link.view.phase, 'Opening');
  await clock.advance(2);
  assert.equal(link.view.phase, 'Unbound');
});

test('a turn goes down and its result comes up', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  await clock.advance(10);
  assert.equal(link.view.started?.turn, 'turn-1');
  pod.finish({ answer: 42 });
  await clock.advance(10);
  assert.deepEqual(link.view.delivery?.result.message.output, { answer: 42 });
});

test('a result that was printed while nobody was attached is fetched by the next attach', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  await clock.advance(10);
  pod.drop();
  pod.finish('unseen');
  await clock.advance(0);
  assert.equal(Boolean(link.view.delivery), false);
  await clock.advance(1000);
  assert.equal(link.view.delivery?.result.message.output, 'unseen');
});

test('after its acknowledgement a result does not come again', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  await clock.advance(10);
  pod.finish('x');
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  assert.equal(link.view.delivery, undefined);
  pod.drop();
  await clock.advance(1000);
  assert.equal(link.view.delivery, undefined);
});

test('a turn whose line was lost shows as not active after the next ping', async () => {
  const { clock, pod, link } = await bound();
  pod.deaf = true;
  link.startTurn(TURN);
  assert.equal(link.view.active, 'turn-1');
  await clock.advance(10);
  pod.deaf = false;
  await clock.advance(60_000);
  assert.deepEqual(pod.given, []);
  assert.equal(link.view.active, undefined);
  assert.ok(link.view.sent.has('turn-1'), 'that it was once sent is not forgotten');
});

test('a turn that is sent twice runs once', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
});

test('a runner that is bound to another session is foreign', async () => {
  const { clock, pod } = await bound();
  const other = setUp({ session: 'session-2', pod, clock });
  await clock.advance(1000);
  assert.equal(other.link.view.phase, 'Foreign');
});

test('a successor learns what runs from a runner that is bound already', async () => {
  const first = await bound();
  first.link.startTurn(TURN);
  await first.clock.advance(10);
  first.link.close();
  const second = setUp({ pod: first.pod, clock: first.clock, epoch: 6 });
  await first.clock.advance(1000);
  assert.equal(second.link.view.phase, 'Bound');
  assert.equal(second.link.view.resumed, true);
  assert.equal(second.link.view.active, 'turn-1');
  first.pod.finish('for the second');
  await first.clock.advance(10);
  assert.equal(second.link.view.delivery?.result.message.output, 'for the second');
});

test('a leader whose epoch a runner has seen surpassed is told the later one', async () => {
  const first = await bound({ epoch: 9 });
  first.link.close();
  const deposed = setUp({ pod: first.pod, clock: first.clock, epoch: 8 });
  await first.clock.advance(1000);
  assert.equal(deposed.later[0], 9);
});

test('a runner that owes an answer is silent since then, also over several attaches', async () => {
  const { clock, pod, link } = await bound();
  pod.deaf = true;
  await clock.advance(30_000);
  const since = link.view.silentSince;
  assert.ok(since);
  await clock.advance(25_000);
  assert.equal(link.view.silentSince, since);
  pod.deaf = false;
  await clock.advance(16_000);
  assert.equal(link.view.silentSince, undefined);
});

test('a suspended runner hands over its state and refuses turns until it is resumed', async () => {
  const { clock, pod, link } = await bound();
  link.suspend();
  await clock.advance(10);
  assert.ok(link.view.snapshot);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.equal(link.view.refused?.code, 'Suspended');
  link.resume();
  assert.equal(link.view.snapshot, undefined);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
});
