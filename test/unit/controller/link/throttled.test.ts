import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Allowances } from '../../../../controller/link/allowance.ts';
import { nothingKept } from '../../../../controller/link/pod-counters.ts';
import { Silences } from '../../../../controller/link/silences.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { bound, hostile, stateOf, TURN } from './support.ts';

const MiB = 1024 * 1024;
const PONG = { n: 1, incarnation: 1, idleMs: 0, suspended: false };
const resultOf = (turn: string) => ({
  turn,
  attempt: 1,
  outcome: 'Succeeded',
  startedAt: '2026-01-01T00:00:00.000Z',
  finishedAt: '2026-01-01T00:00:01.000Z',
  state: 'Unchanged',
  leftRunning: [],
});
const HEADER = `<<<BERTH_START {"v":1,"sid":"s","inc":1,"boot":"b","seq":1,"kind":"x","part":1,"parts":1}>>>\n`;

describe('a pod that prints without end', () => {
  for (const [what, unit] of Object.entries({
    'empty lines': '\n',
    'begin markers': '<<<BERTH_START >>>\n',
    'headers without bodies': HEADER,
    'forged frames': `${HEADER}${'A'.repeat(60)}\n<<<BERTH_END 1/1>>>\n`,
    'a line without an end': 'x'.repeat(1_000),
    'lines of text': `${'x'.repeat(200)}\n`,
  })) {
    test(`${what} is paused, and told of once`, async () => {
      const clock = new VirtualClock();
      const counters = nothingKept();
      const told: number[] = [];
      const onThrottled = () => told.push(clock.monotonic());
      const { print, attaches } = await hostile(clock, { counters, onThrottled });
      const chunk = unit.repeat(Math.ceil(262_144 / unit.length));
      let read = 0;
      const from = clock.monotonic();
      for (; clock.monotonic() < from + 30_000; await clock.advance(50)) {
        if (attaches.at(-1)?.paused) continue;
        print(chunk);
        read += chunk.length;
      }
      const perSecond = read / 30;
      // Kubelet and API server carry it all.
      assert.ok(perSecond < MiB, `${Math.round(perSecond)} bytes/s`);
      assert.deepEqual([told.length, counters.pauses > 10], [1, true]);
    });
  }

  test('frames of its own key is paused, too', async () => {
    const clock = new VirtualClock();
    const { send, attaches } = await hostile(clock);
    let sent = 0;
    while (!attaches.at(-1)?.paused && sent < 10_000) send(++sent, 'pong', PONG);
    assert.ok(sent > 1_000 && sent < 5_000, `${sent} frames`);
  });

  test('results of turns that it was not given is paused, as each costs a look at the turns', async () => {
    const clock = new VirtualClock();
    const { send, link, attaches } = await hostile(clock);
    link.startTurn(TURN);
    let seq = 0;
    const from = clock.monotonic();
    for (; clock.monotonic() < from + 60_000; await clock.advance(50)) {
      if (attaches.at(-1)?.paused) continue;
      seq += 1;
      if (seq % 2 === 1) send(seq, 'started', { turn: `t-${seq}`, attempt: 1, at: '2026-01-01T00:00:00.000Z', pid: 1 });
      else send(seq, 'result', resultOf(`t-${seq - 1}`));
      if (!link.view.delivery) continue;
      link.noteUnmatched();
      link.acknowledge(link.view.delivery.result.seq);
    }
    assert.ok(seq > 20 && seq < 120, `${seq} frames`);
  });

  test('is told of again after ten minutes without a pause', async () => {
    const clock = new VirtualClock();
    const told: number[] = [];
    const { print } = await hostile(clock, { onThrottled: () => told.push(clock.monotonic()) });
    const flood = '\n'.repeat(2_000_000);
    for (const _ of [1, 2]) {
      print(flood);
      await clock.advance(300_000);
      print(flood);
      assert.equal(told.length, 1);
    }
    await clock.advance(601_000);
    print(flood);
    assert.equal(told.length, 2);
  });
});

test('a session that is given the pod of a pool is told of what the pool was told', async () => {
  const clock = new VirtualClock();
  const told: string[] = [];
  const { print, link } = await hostile(clock, { onThrottled: () => told.push(link.session) });
  print('\n'.repeat(2_000_000));
  link.assign('session-2', 1);
  await clock.advance(3_000);
  print('\n'.repeat(2_000_000));
  assert.deepEqual(told, ['session-1', 'session-2']);
});

describe('a pod that is paused', () => {
  test('is not silent for it, and is heard afterwards', async () => {
    const clock = new VirtualClock();
    const { pod, link } = await bound({ clock });
    link.startTurn(TURN);
    await clock.advance(20);
    const { openedAt } = link.view;
    pod.print('\n'.repeat(3_000_000));
    pod.attempts = 0;
    link.cancel('unknown');
    await clock.advance(1_000);
    assert.deepEqual([link.view.refused, link.view.active], [undefined, TURN.turn]);
    await clock.advance(60_000);
    assert.deepEqual([link.view.refused?.code, link.view.silentSince, pod.attempts], ['UnknownTurn', undefined, 0]);
    assert.ok(link.view.openedAt > openedAt, 'its times stand still meanwhile');
    pod.finish('done');
    await clock.advance(5_000);
    assert.equal(link.view.delivery?.result.message.output, 'done');
  });

  test('for ever is silent when it does not answer', async () => {
    const clock = new VirtualClock();
    const silences = new Silences(clock);
    const { print, link, attaches } = await hostile(clock, { silences });
    const from = clock.monotonic();
    const silentMs = () => clock.monotonic() - (link.view.silentSince ?? Number.POSITIVE_INFINITY);
    for (; clock.monotonic() < from + 300_000 && silentMs() < 30_000; await clock.advance(50)) {
      if (!attaches.at(-1)?.paused) print('\n'.repeat(60_000));
    }
    assert.ok(silentMs() >= 30_000, `${silentMs()} ms`);
    // A minute of pauses does not count.
    const tookMs = clock.monotonic() - from;
    assert.ok(tookMs > 80_000 && tookMs < 150_000, `after ${tookMs} ms`);
  });

  test('leaves all others alone', async () => {
    const clock = new VirtualClock();
    const allowances = new Allowances(clock);
    const others = await Promise.all([1, 2, 3].map((n) => hostile(clock, { allowances, uid: `pod-x${n}` })));
    for (const { print } of others) print('\n'.repeat(3_000_000));
    const { pod, link } = await bound({ clock, allowances });
    pod.archive = Buffer.alloc(16 * MiB, 1);
    link.startTurn(TURN);
    await clock.advance(10);
    pod.finish('x');
    await clock.advance(1);
    assert.ok((link.view.delivery?.state?.binary.length ?? 0) > 16 * MiB);
  });
});

test('what twenty runners have told in ten hours of a turn comes to a new leader without a pause', async () => {
  const clock = new VirtualClock();
  const counters = nothingKept();
  const allowances = new Allowances(clock);
  for (let pod = 0; pod < 20; pod++) {
    const { frame, print } = await hostile(clock, { counters, allowances, uid: `pod-${pod}` });
    // One in 30 s.
    const text = Array.from({ length: 1_200 }, (_, i) => frame(i + 1, 'pong', PONG).join('')).join('');
    for (let at = 0; at < text.length; at += 65_536) print(text.slice(at, at + 65_536));
  }
  assert.equal(counters.pauses, 0);
});

test('a state of 64 MiB comes without a pause', async () => {
  const clock = new VirtualClock();
  const counters = nothingKept();
  const { frame, print } = await hostile(clock, { counters });
  const binary = Buffer.alloc(64 * MiB, 1);
  for (const text of frame(1, 'state', stateOf(binary, 't'), binary)) print(text);
  assert.equal(counters.pauses, 0);
});
