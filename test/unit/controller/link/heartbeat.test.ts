import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Heartbeat, type Silence } from '../../../../controller/link/heartbeat.ts';
import type { Figures } from '../../../../controller/observed/link-view.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

function setUp() {
  const clock = new VirtualClock();
  const pings: number[] = [];
  const silences: Silence[] = [];
  const answers = { at: Number.NEGATIVE_INFINITY };
  const attachment = {
    silentSince: undefined as number | undefined,
    failingMs: 0,
    failingSince: undefined as number | undefined,
    expectAnswer() {
      this.silentSince ??= clock.monotonic();
    },
    answered() {
      this.silentSince = undefined;
      this.failingMs = 0;
      this.failingSince = undefined;
    },
    rest() {},
  };
  const heartbeat = new Heartbeat({
    clock,
    attachment,
    answers,
    sendPing: () => pings.push(clock.monotonic()),
    restAt: () => Number.POSITIVE_INFINITY,
    onHeard: () => {},
    onSilence: (silence) => silences.push(silence),
  });
  return { clock, heartbeat, attachment, answers, pings, silences };
}

const figures = (runningMs: number) => ({ turn: 't-1', runningMs }) as Figures;

test('a runner is pinged 30 s after its last frame, and owes an answer from then on', async () => {
  const { clock, heartbeat, pings, silences } = setUp();
  heartbeat.heard();
  await clock.advance(20_000);
  heartbeat.heard();
  await clock.advance(29_999);
  assert.deepEqual([pings, silences.at(-1)?.silentSince], [[], undefined]);
  await clock.advance(1);
  assert.deepEqual([pings, silences.at(-1)?.silentSince], [[50_000], 50_000]);
  heartbeat.heard();
  assert.equal(silences.at(-1)?.silentSince, undefined);
});

test('a running turn is pinged for after 10 s and then every 30 s, without an answer being owed', async () => {
  const { clock, heartbeat, pings, silences } = setUp();
  heartbeat.heard();
  heartbeat.turnStarted();
  await clock.advance(10_000);
  heartbeat.heard();
  heartbeat.reported(figures(10_000));
  for (let waited = 0; waited < 30_000; waited += 1_000) {
    await clock.advance(1_000);
    heartbeat.heard();
  }
  assert.deepEqual(pings, [10_000, 40_000]);
  assert.ok(silences.every(({ silentSince }) => silentSince === undefined));
});

test('an answer from before the first 10 s of a turn does not put off its first figures', async () => {
  const { clock, heartbeat, pings } = setUp();
  heartbeat.heard();
  heartbeat.reported(figures(4_000));
  await clock.advance(6_000);
  assert.deepEqual(pings, [6_000]);
});

test('an ended turn is pinged for no more', async () => {
  const { clock, heartbeat, pings } = setUp();
  heartbeat.heard();
  heartbeat.turnStarted();
  heartbeat.turnEnded();
  await clock.advance(29_000);
  assert.deepEqual(pings, []);
});

test('only a ping of this attach counts as answered, and once', () => {
  const { heartbeat } = setUp();
  heartbeat.ping();
  assert.deepEqual([heartbeat.answers(7), heartbeat.answers(1), heartbeat.answers(1)], [false, true, false]);
  heartbeat.ping();
  heartbeat.opened();
  assert.equal(heartbeat.answers(2), false);
});

test('other runners answer when one has since the attaches of this one began to fail', () => {
  const { heartbeat, attachment, answers, silences } = setUp();
  attachment.failingSince = 5_000;
  attachment.failingMs = 2_000;
  answers.at = 4_000;
  heartbeat.updateSilence();
  answers.at = 5_000;
  heartbeat.updateSilence();
  assert.deepEqual(
    silences.map(({ unreachableMs, othersAnswer }) => [unreachableMs, othersAnswer]),
    [
      [2_000, false],
      [2_000, true],
    ],
  );
});

test('a closed heartbeat pings no more', async () => {
  const { clock, heartbeat, pings } = setUp();
  heartbeat.heard();
  heartbeat.turnStarted();
  heartbeat.close();
  await clock.advance(60_000);
  assert.deepEqual(pings, []);
});
