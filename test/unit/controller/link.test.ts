import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { AttachLimit, type PendingAttach } from '../../../controller/link/attach-limit.ts';
import type { MasterKeys } from '../../../controller/link/keys.ts';
import { Link } from '../../../controller/link/link.ts';
import { Silences } from '../../../controller/link/silences.ts';
import type { LinkView } from '../../../controller/world/link-view.ts';
import { ASK_READY, controlText, readyText } from '../../../core/frames/encode.ts';
import { PROTOCOL_VERSION } from '../../../core/frames/messages.ts';
import { epochProof, frameKeys, sealState } from '../../../core/frames/seal.ts';
import { silentLogger } from '../../../core/system.ts';
import { PodRunner } from '../../support/pod-runner.ts';
import { seededRandom } from '../../support/random.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const KEY = Buffer.alloc(32, 7);
const BIND = {
  protocol: PROTOCOL_VERSION,
  session: { name: 'notes', namespace: 'team', uid: 'session-1' },
  incarnation: 1,
  state: { keyId: 'k', key: KEY.toString('base64') },
  agent: { driver: 'Command', command: ['agent'], args: [], env: [], input: 'Stdin', result: 'Json' },
} as const;
const TURN = { turn: 'turn-1', name: 'a', index: 1, attempt: 1, input: null, timeoutMs: 60_000 };

function setUp(
  change: {
    session?: string;
    incarnation?: number;
    podUID?: string;
    epoch?: number;
    pod?: PodRunner;
    clock?: VirtualClock;
    keys?: MasterKeys;
    onChange?: (view: LinkView) => void;
    lingerMs?: number;
    limit?: AttachLimit;
  } = {},
) {
  const clock = change.clock ?? new VirtualClock();
  const random = seededRandom();
  const pod = change.pod ?? new PodRunner(clock, random);
  const later: number[] = [];
  const answers = { at: Number.NEGATIVE_INFINITY };
  let number = 0;
  const link = new Link({
    api: pod,
    clock,
    random,
    log: silentLogger,
    pod: { namespace: 'team', name: 'pod', uid: change.podUID ?? 'pod-1' },
    session: change.session ?? 'session-1',
    incarnation: change.incarnation ?? 1,
    keys: change.keys ?? { current: { id: 'k', key: KEY }, byId: new Map([['k', KEY]]) },
    epoch: () => change.epoch ?? 5,
    nextNumber: () => ++number,
    answers,
    lingerMs: change.lingerMs ?? 3_600_000,
    limit: change.limit ?? new AttachLimit(16, clock),
    silences: new Silences(clock),
    priority: () => 'WaitedFor',
    onChange: () => change.onChange?.(link.view),
    onLaterEpoch: (epoch) => later.push(epoch),
  });
  link.open({ scheduled: true, running: false, node: 'node-1' });
  return { clock, pod, link, later, answers };
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

test('a pod that is being deleted is attached again at its changes, and otherwise seldom', async () => {
  const { clock, pod, link } = await bound();
  await clock.advance(20_000);
  link.podChanged({ scheduled: true, deleted: true });
  pod.unreachable = true;
  pod.drop();
  pod.attempts = 0;
  await clock.advance(1_900);
  assert.equal(pod.attempts, 1);
  link.podChanged({ scheduled: true, deleted: true });
  await clock.advance(10);
  assert.equal(pod.attempts, 2);
});

test('the pod of a pool, which nobody waits for, is tried every 200 ms, and that of a session every 25', async () => {
  const attempts = async (session: string) => {
    const { clock, pod } = setUp({ session });
    pod.unreachable = true;
    await clock.advance(1_119);
    return pod.attempts;
  };
  assert.deepEqual([await attempts(''), await attempts('session-1')], [5, 40]);
});

test('a runner has answered once it knows this leader: with the answer to its ping, and to no other', async () => {
  const { clock, pod, link } = setUp();
  await clock.advance(200);
  const answered: [LinkView['phase'], boolean][] = [];
  pod.loses = 'ping';
  link.bind({ ...BIND, agent: { ...BIND.agent, command: ['agent'], args: [], env: [] } });
  await clock.advance(10);
  answered.push([link.view.phase, link.view.answered === true]);
  pod.loses = undefined;
  await clock.advance(60_000);
  answered.push([link.view.phase, link.view.answered === true]);
  assert.deepEqual(answered, [
    ['Bound', false],
    ['Bound', true],
  ]);
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

test('frames behind one that was torn ask for it once, and again when it has not come within a second', async () => {
  const { clock, pod, link } = await bound();
  pod.loses = 'resend';
  pod.resends = 0;
  pod.tears = true;
  for (const turn of ['a', 'b', 'c', 'd']) {
    link.cancel(turn);
    await clock.advance(10);
  }
  assert.deepEqual([pod.resends, link.view.refused], [1, undefined]);
  pod.loses = undefined;
  await clock.advance(1000);
  assert.deepEqual([pod.resends, link.view.refused?.code], [2, 'UnknownTurn']);
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

test('a turn that the runner says it does not have is not active, also where the ping after that is lost', async () => {
  const { clock, pod, link } = await bound();
  pod.loses = 'turn';
  link.startTurn(TURN);
  await clock.advance(10);
  assert.equal(link.view.active, 'turn-1');
  pod.loses = 'ping';
  link.cancel('turn-1');
  await clock.advance(10);
  assert.deepEqual([link.view.refused?.code, link.view.active], ['UnknownTurn', undefined]);
});

/** Runs one turn and acknowledges its end. */
async function runTurn({ clock, pod, link }: Awaited<ReturnType<typeof bound>>, turn: string) {
  link.startTurn({ ...TURN, turn });
  await clock.advance(100);
  pod.finish('x');
  await clock.advance(100);
  link.acknowledge(link.view.delivery!.result.seq);
  await clock.advance(10);
}

describe('an attach', () => {
  test('of an idle runner is closed after its linger, and nothing is asked of the runner until the next turn', async () => {
    const parts = await bound({ lingerMs: 90_000 });
    const { clock, pod, link } = parts;
    await runTurn(parts, 'turn-1');
    await clock.advance(89_000);
    assert.equal(link.isAttached, true);
    await clock.advance(1_000);
    assert.equal(link.isAttached, false);
    const { asked } = pod;
    await clock.advance(3_600_000);
    assert.deepEqual(
      [link.isAttached, pod.asked, link.view.silentSince, link.view.phase],
      [false, asked, undefined, 'Bound'],
    );
    link.startTurn({ ...TURN, turn: 'turn-2' });
    await clock.advance(0);
    assert.deepEqual([pod.given, link.isAttached], [['turn-1', 'turn-2'], true]);
    pod.finish('y');
    await clock.advance(10);
    assert.equal(link.view.delivery?.result.message.output, 'y');
  });

  test('stays open while a turn runs and until its end is acknowledged', async () => {
    const { clock, pod, link } = await bound({ lingerMs: 1_000 });
    link.startTurn({ ...TURN, timeoutMs: 24 * 3_600_000 });
    await clock.advance(3_600_000);
    assert.equal(link.isAttached, true);
    pod.finish('x');
    await clock.advance(3_600_000);
    assert.equal(link.isAttached, true);
    link.acknowledge(link.view.delivery!.result.seq);
    // The linger counts from the answer to the next ping.
    await clock.advance(31_000);
    assert.equal(link.isAttached, false);
  });

  test('that was closed is opened for a suspension, which is answered over it', async () => {
    const parts = await bound({ lingerMs: 1_000 });
    await runTurn(parts, 'turn-1');
    await parts.clock.advance(60_000);
    assert.equal(parts.link.isAttached, false);
    parts.link.suspend({});
    await parts.clock.advance(100);
    assert.deepEqual([parts.link.view.suspended, parts.link.view.snapshot !== undefined], [true, true]);
    await parts.clock.advance(60_000);
    assert.equal(parts.link.isAttached, true);
  });

  test('that was closed keeps what is to be sent until an attempt succeeds', async () => {
    const parts = await bound({ lingerMs: 1_000 });
    const { clock, pod, link } = parts;
    await runTurn(parts, 'turn-1');
    await clock.advance(60_000);
    pod.unreachable = true;
    link.startTurn({ ...TURN, turn: 'turn-2' });
    await clock.advance(5_000);
    link.cancel('turn-2');
    await clock.advance(30_000);
    assert.deepEqual([pod.given, link.view.silentSince], [['turn-1'], undefined]);
    assert.ok((link.view.unreachableMs ?? 0) > 20_000);
    pod.unreachable = false;
    await clock.advance(20_000);
    assert.deepEqual([pod.given, link.view.delivery?.result.message.outcome], [['turn-1', 'turn-2'], 'Cancelled']);
  });
});

describe('an attach that waits for others of its node', () => {
  const NEVER = new AbortController().signal;
  const OTHER: PendingAttach = { priority: () => 'WaitedFor' };
  const hasRoom = (limit: AttachLimit) => limit.hasRoom('node-1', 'WaitedFor');
  /** A link to a node with one place. `taken`: another attach has it, and gives it back with what this resolves to. */
  async function crowded() {
    const clock = new VirtualClock();
    const limit = new AttachLimit(1, clock);
    const parts = await bound({ clock, limit });
    const taken = async () => (await limit.enter('node-1', { ...OTHER }, NEVER))!;
    return { ...parts, limit, taken };
  }

  test('is opened when one of them has its answer', async () => {
    const clock = new VirtualClock();
    const limit = new AttachLimit(1, clock);
    const leave = await limit.enter('node-1', OTHER, NEVER);
    const { pod, link } = setUp({ clock, limit });
    await clock.advance(10_000);
    assert.deepEqual([pod.attempts, link.view.phase], [0, 'Opening']);
    leave?.();
    await clock.advance(10);
    assert.deepEqual([pod.attempts, link.view.phase, hasRoom(limit)], [1, 'Unbound', true]);
  });

  test('leaves its own place when it is refused, cut off, unanswered or closed', async () => {
    const { clock, pod, link, limit } = await crowded();
    const places: boolean[] = [];
    const seen = async (ms: number) => {
      await clock.advance(ms);
      places.push(hasRoom(limit));
    };
    pod.unreachable = true;
    pod.drop();
    await seen(60_000);
    pod.unreachable = false;
    pod.deaf = true;
    link.podChanged({ scheduled: true, deleted: false, node: 'node-1' });
    await seen(1_000);
    await seen(4_000);
    while (hasRoom(limit)) await clock.advance(100);
    pod.drop();
    await seen(1);
    while (hasRoom(limit)) await clock.advance(100);
    link.close();
    await seen(0);
    assert.deepEqual(places, [true, false, true, true, true]);
  });

  test('shows that, and is silent and out of reach for no longer than it was before', async () => {
    const { clock, pod, link, limit, taken } = await crowded();
    pod.deaf = true;
    link.startTurn(TURN);
    await clock.advance(4_999);
    const leave = await taken();
    const silentMs = () => clock.monotonic() - (link.view.silentSince ?? 0);
    await clock.advance(2_000);
    const before = silentMs();
    await clock.advance(600_000);
    assert.deepEqual([link.view.queued, silentMs()], [true, before]);
    leave();
    await clock.advance(0);
    assert.deepEqual([link.view.queued, silentMs(), hasRoom(limit)], [undefined, before, false]);
    assert.ok(before >= 5_000 && before < 7_000, `${before} ms`);
  });

  test('is not older for it, nor are the binding and the cancellation that were sent before', async () => {
    const { clock, pod, link, taken } = await crowded();
    link.startTurn(TURN);
    link.cancel('turn-1');
    const { view } = link;
    const leave = await taken();
    pod.drop();
    await clock.advance(1_000);
    const from = clock.monotonic();
    await clock.advance(600_000);
    leave();
    await clock.advance(0);
    const later = link.view.openedAt - view.openedAt;
    assert.ok(later >= clock.monotonic() - from, `${later} ms`);
    assert.equal((link.view.bindSentAt ?? 0) - (view.bindSentAt ?? 0), later);
    const cancelledAt = ({ cancelSent }: LinkView) => cancelSent?.get('turn-1')?.at ?? 0;
    assert.equal(cancelledAt(link.view) - cancelledAt(view), later);
  });

  test('is then tried as often as a pod that has just started', async () => {
    const clock = new VirtualClock();
    const limit = new AttachLimit(1, clock);
    const leave = await limit.enter('node-1', OTHER, NEVER);
    const { pod } = setUp({ clock, limit });
    pod.unreachable = true;
    await clock.advance(10_000);
    leave?.();
    await clock.advance(500);
    assert.equal(pod.attempts, 21);
  });

  test('is not out of reach for the longer', async () => {
    const { clock, pod, link, taken } = await crowded();
    pod.unreachable = true;
    pod.drop();
    await clock.advance(3_000);
    const leave = await taken();
    await clock.advance(600_000);
    leave();
    await clock.advance(20_000);
    const { unreachableMs = 0 } = link.view;
    assert.ok(unreachableMs > 2_000 && unreachableMs < 30_000, `${unreachableMs} ms`);
  });
});

/** A pod that was bound, and whose state was lost on the way to it. */
async function unrestored() {
  const parts = setUp();
  await parts.clock.advance(200);
  parts.pod.loses = 'restore';
  giveState(parts.link);
  parts.link.startTurn(TURN);
  await parts.clock.advance(10);
  assert.equal(parts.link.view.refused?.code, 'NotRestored');
  parts.pod.loses = undefined;
  return parts;
}

function giveState(link: Link): void {
  const digest = 'ab'.repeat(32);
  const sealed = sealState(KEY, Buffer.from('packed'), { session: 'session-1', keyId: 'k' }, seededRandom());
  const restores = { digest, incarnation: 1, seq: 9 };
  link.bind(
    { ...BIND, agent: { ...BIND.agent, command: ['agent'], args: [], env: [] }, restores },
    { state: { digest, keyId: 'k', sealed } },
  );
}

test('a state that was lost on its way is given again, and the turn that was refused for it then runs', async () => {
  const { clock, pod, link } = await unrestored();
  giveState(link);
  await clock.advance(10);
  assert.equal(link.view.active, undefined);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
  assert.equal(link.view.refused, undefined);
});

test('a runner that cannot unpack its environment says so, also after it has refused the turn for want of it', async () => {
  for (const code of ['EnvironmentMismatch', 'EnvironmentFailed'] as const) {
    const { clock, pod, link } = setUp();
    await clock.advance(200);
    const error = new Error('another Python');
    pod.unpackError = code === 'EnvironmentMismatch' ? Object.assign(error, { code }) : error;
    const digest = 'cd'.repeat(32);
    const sealed = sealState(KEY, Buffer.from('packed'), { session: 'build-1', keyId: 'k' }, seededRandom());
    const environment = { digest, session: 'build-1', keyId: 'k', key: KEY.toString('base64') };
    const agent = { ...BIND.agent, command: ['agent'], args: [], env: [] };
    link.bind({ ...BIND, agent, environment }, { environment: { digest, sealed } });
    link.startTurn(TURN);
    await clock.advance(10);
    assert.deepEqual([link.view.refused?.code, pod.given], [code, []]);
  }
});

test('an answer is waited for from when the lines before it are written: a large one may take long', async () => {
  const { clock, pod, link } = await bound();
  pod.writeMs = 4_000;
  // Three lines, the last of which is answered.
  link.acknowledge(0);
  link.acknowledge(0);
  link.startTurn(TURN);
  await clock.advance(11_000);
  pod.writeMs = 0;
  await clock.advance(1_010);
  assert.deepEqual([pod.given, link.view.started?.turn], [['turn-1'], 'turn-1']);
});

test('a runner without its state that was asked to suspend is asked again once it has it', async () => {
  const { clock, pod, link } = await unrestored();
  link.suspend({});
  await clock.advance(10);
  assert.equal(link.view.refused?.code, 'NotRestored');
  giveState(link);
  await clock.advance(10);
  assert.ok(link.view.snapshot);
  assert.deepEqual(pod.given, []);
});

test('a successor with a newer master key gives a lost state again under the keys the runner has', async () => {
  const { clock, pod, link } = await unrestored();
  link.close();
  const newer = Buffer.alloc(32, 8);
  const keys = {
    current: { id: 'n', key: newer },
    byId: new Map([
      ['n', newer],
      ['k', KEY],
    ]),
  };
  const successor = setUp({ clock, pod, keys, epoch: 6 });
  await clock.advance(60_000);
  assert.equal(successor.link.view.phase, 'Bound');
  giveState(successor.link);
  successor.link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
});

test('a successor does not give a state again that a runner has had since it asked for it', async () => {
  const { clock, pod, link } = await unrestored();
  giveState(link);
  await clock.advance(10);
  link.startTurn(TURN);
  await clock.advance(10);
  link.close();
  const successor = setUp({ clock, pod, epoch: 6 });
  await clock.advance(10_000);
  assert.deepEqual([successor.link.view.started?.turn, successor.link.view.refused], ['turn-1', undefined]);
});

test('a turn that is sent twice runs once', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
});

test('the files of the agent follow the binding, and a turn waits for all of them', async () => {
  const { clock, pod, link } = await setUp();
  await clock.advance(200);
  pod.loses = 'files';
  const agent = { ...BIND.agent, command: ['agent'], args: [], env: [] };
  const bind = () =>
    link.bind(
      { ...BIND, agent, files: { due: true } },
      {
        files: [Buffer.from('a'), Buffer.from('b')],
      },
    );
  bind();
  await clock.advance(10);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual([link.view.refused?.code, pod.given, pod.files], ['NotRestored', [], []]);
  pod.loses = undefined;
  bind();
  await clock.advance(10);
  assert.deepEqual(pod.files, ['a', 'b']);
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

test('a runner that is bound to another incarnation, or in another pod of the name, is foreign and gives nothing', async () => {
  for (const change of [{ incarnation: 2 }, { podUID: 'pod-2' }]) {
    const { clock, pod, link } = await bound();
    link.startTurn(TURN);
    await clock.advance(10);
    link.close();
    const other = setUp({ ...change, pod, clock });
    await clock.advance(1000);
    pod.finish('for the first');
    await clock.advance(1000);
    assert.deepEqual([other.link.view.phase, other.link.view.delivery], ['Foreign', undefined]);
    other.link.startTurn({ ...TURN, turn: 'turn-2' });
    await clock.advance(1000);
    assert.deepEqual(pod.given, ['turn-1']);
  }
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

test('a turn whose end is acknowledged is not taken to run because of an answer that was given before', async () => {
  const first = await bound();
  first.link.startTurn(TURN);
  await first.clock.advance(10);
  first.link.close();
  first.pod.finish('done');
  // The answer to the ping that begins every attach follows the result: the runner had no acknowledgement when it answered.
  let hasEnded = false;
  const onChange = ({ delivery }: LinkView) => {
    if (!delivery) return;
    hasEnded = true;
    second.link.acknowledge(delivery.result.seq);
  };
  const second = setUp({ pod: first.pod, clock: first.clock, epoch: 6, onChange });
  await first.clock.advance(1000);
  assert.ok(hasEnded);
  assert.equal(second.link.view.phase, 'Bound');
  assert.equal(second.link.view.active, undefined);
  assert.deepEqual([...second.link.view.sent], []);
});

test('a runner that refuses to stop a turn is asked what it has', async () => {
  const { clock, pod, link } = await bound();
  await clock.advance(10);
  const asked = pod.asked;
  link.cancel('turn-9');
  await clock.advance(10);
  assert.deepEqual([link.view.refused?.code, pod.asked], ['UnknownTurn', asked + 1]);
});

test('a runner that refuses a turn until the one before is stored is asked when it is free, and given the turn again then', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  await clock.advance(10);
  pod.finish('done');
  await clock.advance(10);
  const second = { ...TURN, turn: 'turn-2', index: 2 };
  link.startTurn(second);
  await clock.advance(10);
  assert.deepEqual(
    [link.view.refused?.code, link.view.active, link.view.sent.has('turn-2')],
    ['Busy', 'turn-1', false],
  );
  link.acknowledge(link.view.delivery?.result.seq ?? 0);
  assert.equal(link.view.active, undefined);
  link.startTurn(second);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1', 'turn-2']);
});

const LONG = { ...TURN, timeoutMs: 600_000 };
/** Figures of `turn-1` as they came, by the seconds that its process had run. */
const told = (views: LinkView[]) => [
  ...new Set(views.flatMap(({ figures }) => (figures ? [Math.round(figures.runningMs / 1000)] : []))),
];

test('a turn is asked for its figures when it has run ten seconds, then every 30 s, and no more when it has ended', async () => {
  const views: LinkView[] = [];
  const { clock, pod, link } = await bound({ onChange: (view) => views.push(view) });
  await clock.advance(20_000);
  link.startTurn(LONG);
  await clock.advance(9_000);
  assert.deepEqual(told(views), []);
  await clock.advance(62_000);
  assert.deepEqual(told(views), [10, 40, 70]);
  const { turn, attempt, usage, at } = link.view.figures!;
  assert.deepEqual([turn, attempt, usage?.wallMs, at], ['turn-1', 1, 70_000, clock.now() - 1_000]);
  pod.finish('done');
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  assert.equal(link.view.figures, undefined);
  const asked = pod.asked;
  await clock.advance(29_000);
  assert.equal(pod.asked, asked);
});

test('a turn is asked for its figures, and one that is short is not', async () => {
  const views: LinkView[] = [];
  const { clock, pod, link } = await bound({ onChange: (view) => views.push(view) });
  link.startTurn(LONG);
  await clock.advance(45_000);
  assert.deepEqual(told(views), [10, 40]);
  pod.finish('done');
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  const asked = pod.asked;
  link.startTurn({ ...TURN, turn: 'turn-2' });
  await clock.advance(5_000);
  pod.finish('done');
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  await clock.advance(20_000);
  assert.equal(pod.asked, asked);
});

test('a runner that does not answer with figures is not silent before it would be without them', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(LONG);
  await clock.advance(10);
  pod.loses = 'ping';
  const began = clock.monotonic();
  await clock.advance(29_000);
  assert.deepEqual([link.view.silentSince, pod.asked >= 1], [undefined, true]);
  await clock.advance(6_000);
  const since = (link.view.silentSince ?? 0) - began;
  assert.ok(since >= 29_000 && since <= 30_000, `${since}`);
});

test('figures that were told before a successor came are not taken for those of now', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(LONG);
  await clock.advance(40_000);
  assert.ok(link.view.figures);
  link.close();
  const views: LinkView[] = [];
  setUp({ clock, pod, epoch: 6, onChange: (view) => views.push(view) });
  await clock.advance(31_000);
  assert.deepEqual(told(views), [40, 70]);
  const [first] = views.filter(({ figures }) => figures);
  assert.ok(first?.figures && first.figures.usage!.wallMs >= 40_000, JSON.stringify(first?.figures));
});

test('answers of a runner to an earlier leader are not taken for its present state', async () => {
  const { clock, pod, link } = await bound();
  await clock.advance(100_000);
  link.suspend(undefined);
  await clock.advance(10);
  assert.equal(link.view.suspended, true);
  link.resume();
  const idleSince = link.view.lastActivity as number;
  link.close();
  const views: LinkView[] = [];
  setUp({ clock, pod, epoch: 6, onChange: (view) => views.push(view) });
  await clock.advance(1000);
  assert.equal(views.at(-1)?.phase, 'Bound');
  for (const { lastActivity = idleSince, suspended } of views) {
    assert.ok(Math.abs(lastActivity - idleSince) <= 20, `it rests since ${idleSince}, not ${lastActivity}`);
    assert.equal(suspended, false);
  }
});

test("times of a runner are converted to the controller's clock, whatever the runner's clock says", async () => {
  for (const skew of [-3_600_000, 3_600_000]) {
    const clock = new VirtualClock();
    let jump = 0;
    const own = {
      now: () => clock.now() + skew + jump,
      monotonic: () => clock.monotonic(),
      setTimer: clock.setTimer.bind(clock),
    };
    const pod = new PodRunner(own, seededRandom());
    const first = await bound({ clock, pod });
    first.link.startTurn(TURN);
    await clock.advance(10);
    const { started } = first.link.view;
    assert.ok(Math.abs(Date.parse(started?.at ?? '') - clock.now()) <= 20, started?.at);

    jump = skew;
    await clock.advance(40_000);
    first.link.close();
    const second = setUp({ pod, clock, epoch: 6 });
    await clock.advance(1000);
    const again = Date.parse(second.link.view.started?.at ?? '');
    assert.ok(Math.abs(again - Date.parse(started?.at ?? '')) <= 20, `${again}`);
    assert.ok(Math.abs((second.link.view.lastActivity ?? 0) - again) <= 1100);
  }
});

test('a leader whose epoch a runner has seen surpassed is told the later one', async () => {
  const first = await bound({ epoch: 9 });
  first.link.close();
  const deposed = setUp({ pod: first.pod, clock: first.clock, epoch: 8 });
  await first.clock.advance(1000);
  assert.equal(deposed.later[0], 9);
});

test('an epoch that a pod names without a proof of this installation changes nothing', async () => {
  const { clock, pod, link, later } = await bound();
  const ready = (epoch: number, proof?: string) =>
    readyText({
      ...{ boot: link.boot ?? '', protocol: PROTOCOL_VERSION, runnerVersion: '1', podUID: 'pod-1', lastSeq: 0, epoch },
      ...(proof && { proof }),
    });
  const keys = frameKeys(KEY, { session: 'session-1', podUID: 'pod-1', boot: link.boot ?? '' });
  const { attempts } = pod;
  pod.print(ready(2 ** 31 - 2));
  pod.print(ready(900, epochProof(KEY, 'pod-2', 900)));
  pod.print(ready(900, epochProof(KEY, 'pod-1', 899)));
  for (const key of [keys.up, keys.down]) pod.print(ready(900, epochProof(key, 'pod-1', 900)));
  await clock.advance(100);
  assert.deepEqual([later, pod.attempts], [[], attempts]);
  pod.print(ready(900, epochProof(KEY, 'pod-1', 900)));
  assert.deepEqual(later, [900]);
});

test('the proof of an epoch serves with each master key of the installation', async () => {
  const other = { id: 'new', key: Buffer.alloc(32, 9) };
  const first = await bound({ epoch: 9 });
  first.link.close();
  const keys = (byId: [string, Buffer][]) => ({ current: other, byId: new Map(byId) });
  const kept = setUp({
    ...first,
    epoch: 8,
    keys: keys([
      ['k', KEY],
      [other.id, other.key],
    ]),
  });
  await first.clock.advance(1000);
  kept.link.close();
  const lost = setUp({ ...first, epoch: 8, keys: keys([[other.id, other.key]]) });
  await first.clock.advance(1000);
  assert.deepEqual([kept.later[0], lost.later], [9, []]);
});

test('a runner that refuses every line for an epoch without a proof is silent, and is attached no more often for it', async () => {
  const { clock, pod, link, later } = await bound();
  const key = frameKeys(KEY, { session: 'session-1', podUID: 'pod-1', boot: link.boot ?? '' }).down;
  const channel = { session: 'session-1', incarnation: 1, boot: link.boot ?? '', key, random: seededRandom() };
  for (const line of controlText(channel, { epoch: 900, n: 1 }, 'ping', {})) pod.runner.push(Buffer.from(line));
  await clock.advance(10);
  pod.attempts = 0;
  const from = clock.monotonic();
  link.startTurn(TURN);
  await clock.advance(45_000);
  const silentMs = clock.monotonic() - (link.view.silentSince ?? Number.POSITIVE_INFINITY);
  assert.deepEqual([later, pod.given], [[], []]);
  assert.ok(silentMs >= 30_000, `silent for ${silentMs} of ${clock.monotonic() - from} ms`);
  assert.ok(pod.attempts <= 6, `${pod.attempts} attempts`);
});

test('a runner whose `ready` has the controller attach again for a later epoch is not silent for what it owed before', async () => {
  const leader = { epoch: 9 };
  const { clock, pod, link } = await bound(leader);
  pod.deaf = true;
  link.startTurn(TURN);
  await clock.advance(1);
  const since = link.view.silentSince;
  assert.ok(since);
  leader.epoch = 8;
  pod.deaf = false;
  pod.runner.push(Buffer.from(ASK_READY));
  await clock.advance(1);
  assert.notEqual(link.view.silentSince, since);
});

test('a runner that owes an answer is asked again over a new attach, and has longer to answer over each', async () => {
  const { clock, pod, link } = await bound();
  pod.deaf = true;
  // Until the first ping.
  while (link.view.silentSince === undefined) await clock.advance(100);
  const opened: number[] = [link.view.silentSince];
  for (let before = pod.attempts; opened.length < 5; await clock.advance(25)) {
    if (pod.attempts > before) opened.push(clock.monotonic());
    before = pod.attempts;
  }
  const seconds = opened.slice(1).map((at, i) => Math.round((at - (opened[i] ?? 0)) / 1000));
  assert.deepEqual(seconds, [5, 10, 15, 15]);
  pod.deaf = false;
  await clock.advance(16_000);
  assert.equal(link.view.silentSince, undefined);
  pod.deaf = true;
  link.startTurn(TURN);
  const { attempts } = pod;
  await clock.advance(5_100);
  assert.equal(pod.attempts, attempts + 1, 'the first attach of another silence has the shortest time');
});

test('a runner is silent for as long as an attach was open over which it owed an answer', async () => {
  const { clock, pod, link } = await bound();
  pod.deaf = true;
  link.startTurn(TURN);
  const silentMs = () => clock.monotonic() - (link.view.silentSince ?? Number.NEGATIVE_INFINITY);
  await clock.advance(4_990);
  pod.unreachable = true;
  await clock.advance(600_000);
  assert.equal(silentMs(), 5_000);
  pod.unreachable = false;
  link.podChanged({ scheduled: true, deleted: false });
  await clock.advance(4_000);
  assert.ok(link.isAttached);
  assert.ok(silentMs() > 8_900 && silentMs() <= 9_000, `${silentMs()} ms`);
  await clock.advance(12_000);
  assert.ok(silentMs() > 20_800 && silentMs() <= 21_000, `${silentMs()} ms`);
});

test('a pod that nobody can attach to is unreachable for as long as that is tried, until it answers again', async () => {
  const { clock, pod, link, answers } = await bound();
  assert.equal(link.view.unreachableMs, undefined);
  pod.unreachable = true;
  pod.drop();
  await clock.advance(60_000);
  const after = link.view.unreachableMs ?? 0;
  assert.ok(after > 40_000 && after <= 60_000, `${after} ms by then`);
  assert.equal(link.view.othersAnswer, false);
  // Opened and not answered is no better.
  pod.unreachable = false;
  pod.deaf = true;
  await clock.advance(30_000);
  assert.ok((link.view.unreachableMs ?? 0) > after);
  answers.at = clock.monotonic();
  await clock.advance(20_000);
  assert.equal(link.view.othersAnswer, true);
  pod.deaf = false;
  await clock.advance(30_000);
  assert.equal(link.view.unreachableMs, undefined);
});

test('a suspended runner hands over its state and refuses turns until it is resumed', async () => {
  const { clock, pod, link } = await bound();
  link.suspend({});
  assert.equal(link.view.suspended, false);
  await clock.advance(10);
  assert.ok(link.view.snapshot);
  assert.equal(link.view.suspended, true);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.equal(link.view.refused?.code, 'Suspended');
  assert.equal(link.view.sent.size, 0, 'what was refused was not begun');
  link.resume();
  assert.equal(link.view.snapshot, undefined);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
});

test('a successor that suspends takes no snapshot that its predecessor asked for, and the one that it asked for also when it comes again', async () => {
  const { clock, pod, link } = await bound();
  link.suspend({});
  await clock.advance(10);
  const first = link.view.snapshot!.seq;
  link.close();
  pod.packMs = 2_000;
  const seen = new Set<number | undefined>();
  let isAsked = false;
  const { link: next } = setUp({
    ...{ clock, pod, epoch: 6 },
    onChange: ({ phase, snapshot }) => {
      seen.add(snapshot?.seq);
      if (isAsked || phase !== 'Bound') return;
      isAsked = true;
      next.suspend({});
    },
  });
  await clock.advance(1_000);
  assert.deepEqual([isAsked, next.view.suspended, next.view.snapshot], [true, true, undefined]);
  pod.unreachable = true;
  pod.drop();
  await clock.advance(2_000);
  pod.unreachable = false;
  next.podChanged({ scheduled: true, deleted: false });
  await clock.advance(1_000);
  assert.ok(next.view.snapshot && next.view.snapshot.seq > first);
  assert.ok(!seen.has(first));
  pod.packMs = 0;
  next.resume();
  next.startTurn(TURN);
  await clock.advance(5_000);
  pod.finish('seen');
  await clock.advance(10);
  assert.equal(
    next.view.delivery?.result.message.output,
    'seen',
    'nothing is held up by the snapshot that was passed over',
  );
});

test('an earlier cancellation that came in vain says nothing of a later one', async () => {
  const { clock, link } = await bound();
  link.cancel('turn-0');
  await clock.advance(10);
  assert.equal(link.view.refused?.code, 'UnknownTurn');
  link.startTurn(TURN);
  await clock.advance(10);
  link.cancel(TURN.turn);
  assert.equal(link.view.refused, undefined);
  await clock.advance(10);
  assert.equal(link.view.refused, undefined);
});

test('a refusal of one cancellation says nothing of another turn, though both are sent again over the next attach', async () => {
  const unknown: string[][] = [];
  const onChange = ({ cancelSent }: LinkView) =>
    unknown.push([...(cancelSent ?? [])].flatMap(([turn, sent]) => (sent.unknown ? [turn] : [])));
  const { clock, pod, link } = await bound({ onChange });
  pod.loses = 'turn';
  link.startTurn({ ...TURN, turn: 'lost' });
  await clock.advance(10);
  pod.loses = 'cancel';
  link.cancel('lost');
  await clock.advance(10);
  pod.loses = undefined;
  link.startTurn({ ...TURN, index: 2 });
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
  pod.loses = 'cancel';
  link.cancel('turn-1');
  await clock.advance(10);
  pod.loses = undefined;
  pod.drop();
  await clock.advance(1000);
  assert.deepEqual([...new Set(unknown.flat())], ['lost']);
  assert.equal(link.view.delivery?.result.message.outcome, 'Cancelled');
});

test('neither the cancellation of a turn that the runner never had is sent again, nor that of one whose end is stored', async () => {
  const { clock, pod, link } = await bound();
  link.cancel('never');
  await clock.advance(10);
  link.startTurn(TURN);
  await clock.advance(10);
  link.cancel(TURN.turn);
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  assert.deepEqual([...(link.view.cancelSent ?? []).keys()], ['never']);
  assert.ok(link.view.cancelSent?.get('never')?.unknown);
  const before = pod.cancelled;
  pod.drop();
  await clock.advance(1000);
  assert.equal(pod.cancelled, before);
});

test('a session that goes on after its suspension was undone is not taken for suspended', async () => {
  const { link } = await bound();
  link.suspend(undefined);
  assert.equal(link.view.suspendSent, true);
  link.resume();
  assert.equal(link.view.suspendSent, false);
  assert.equal(link.view.suspended, false);
});
