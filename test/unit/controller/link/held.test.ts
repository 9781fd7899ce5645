import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { HeldBytes } from '../../../../controller/link/held-bytes.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { bound, hostile, stateOf, TURN } from './support.ts';

const MiB = 1024 * 1024;
const PONG = { n: 1, incarnation: 1, idleMs: 0, suspended: false };
const RESULT = {
  turn: 't',
  attempt: 1,
  outcome: 'Succeeded',
  startedAt: '2026-01-01T12:00:00.000Z',
  finishedAt: '2026-01-01T12:00:01.000Z',
  leftRunning: [],
};

describe('what is kept of a pod', () => {
  test('is one frame of each kind, whatever turns its frames name', async () => {
    const clock = new VirtualClock();
    const held = new HeldBytes(clock);
    const { send } = await hostile(clock, { held });
    const binary = Buffer.alloc(MiB / 4);
    for (let seq = 1; seq <= 20; seq++) send(seq, 'state', stateOf(binary, `turn-${seq}`), binary);
    assert.ok(held.bytes < MiB / 2, `${held.bytes} bytes`);
  });

  test('is no snapshot that was not asked for', async () => {
    const clock = new VirtualClock();
    const held = new HeldBytes(clock);
    const { send, link } = await hostile(clock, { held });
    send(1, 'state', stateOf(Buffer.alloc(MiB)), Buffer.alloc(MiB));
    assert.deepEqual([held.bytes, link.view.snapshot?.seq], [0, undefined]);
    link.suspend({});
    send(2, 'state', stateOf(Buffer.alloc(MiB)), Buffer.alloc(MiB));
    assert.equal(link.view.snapshot?.seq, 2);
  });

  test('is few of the turns that its runner reports', async () => {
    const clock = new VirtualClock();
    const { send, link } = await hostile(clock);
    const at = '2026-01-01T12:00:00.000Z';
    for (let seq = 1; seq <= 500; seq++) send(seq, 'started', { turn: `turn-${seq}`, attempt: 1, at, pid: 1 });
    assert.equal(link.view.sent.size, 64);
    link.startTurn({ ...TURN, turn: 'mine' });
    assert.ok(link.view.sent.has('mine'));
  });

  test('is nothing of a message with more JSON than its kind can have', async () => {
    const clock = new VirtualClock();
    const warned: object[] = [];
    const log = { debug() {}, info() {}, error() {}, warn: (facts: object) => warned.push(facts), child: () => log };
    const { send, link } = await hostile(clock, { log });
    send(1, 'bye', { reason: 'Fault', message: '', padding: 'x'.repeat(MiB) });
    assert.deepEqual([link.view.phase, warned.length], ['Opening', 1]);
    send(2, 'bye', { reason: 'Fault', message: '', padding: 'x'.repeat(MiB / 2) });
    assert.equal(link.view.phase, 'Ended');
  });
});

describe('a message that finds no room', () => {
  /** An honest runner whose turn has ended with a state of 3 MiB, beside pods that hold all the memory there is. */
  async function crowded() {
    const clock = new VirtualClock();
    const held = new HeldBytes(clock, { maxBytes: 4 * MiB });
    const others = await hostile(clock, { held, uid: 'pod-2' });
    const [, ...rest] = others.frame(1, 'state', stateOf(Buffer.alloc(3 * MiB)), Buffer.alloc(3 * MiB));
    for (const text of rest) others.print(text);
    const { pod, link } = await bound({ clock, held });
    pod.archive = Buffer.alloc(3 * MiB, 1);
    link.startTurn(TURN);
    await clock.advance(100);
    pod.resends = 0;
    pod.finish({ answer: 42 });
    await clock.advance(100);
    return { clock, held, others, pod, link };
  }

  test('is not kept, and its runner is neither silent nor asked again and again', async () => {
    const { clock, held, pod, link } = await crowded();
    await clock.advance(20_000);
    assert.deepEqual([link.view.delivery?.result.seq, link.view.queued, pod.resends], [undefined, true, 0]);
    assert.equal(link.view.silentSince, undefined);
    assert.ok(held.bytes <= 4 * MiB);
  });

  test('comes once there is room, and its wait counts for nothing', async () => {
    const { clock, others, pod, link } = await crowded();
    const { openedAt } = link.view;
    await clock.advance(10_000);
    others.link.close();
    await clock.advance(100);
    assert.deepEqual([link.view.delivery?.result.message.output, link.view.queued], [{ answer: 42 }, undefined]);
    assert.deepEqual([(link.view.delivery?.state?.binary.length ?? 0) > 3 * MiB, pod.resends], [true, 1]);
    assert.equal(link.view.openedAt - openedAt, 10_000);
  });

  test('comes within 30 s beside a pod whose message never ends', async () => {
    const { clock, others, link } = await crowded();
    await clock.advance(30_000);
    assert.deepEqual(link.view.delivery?.result.message.output, { answer: 42 });
    link.acknowledge(link.view.delivery!.result.seq);
    await clock.advance(10);
    assert.ok(others.lines.at(-1)?.includes('"kind":"resend"'), 'the other is asked again');
  });

  test('that had come and was taken away is asked for and whole when it comes again', async () => {
    const clock = new VirtualClock();
    const held = new HeldBytes(clock, { maxBytes: 4 * MiB });
    const { link, send, lines, frame, print } = await hostile(clock, { held });
    const binary = Buffer.alloc(3 * MiB, 1);
    send(1, 'pong', PONG);
    send(2, 'state', stateOf(binary, 't'), binary);
    await clock.advance(40_000);
    const other = await hostile(clock, { held, uid: 'pod-2' });
    const [first = '', ...rest] = other.frame(1, 'state', stateOf(binary), binary);
    other.print(first);
    await clock.advance(1_000);
    const result = frame(3, 'result', { ...RESULT, state: { seq: 2, digest: 'a'.repeat(64) } });
    for (const text of result) print(text);
    assert.deepEqual([link.view.delivery?.result.seq, link.view.queued], [undefined, true]);
    for (const text of rest) other.print(text);
    other.link.close();
    await clock.advance(10);
    assert.equal(lines.filter((line) => line.includes('"kind":"resend"')).length, 2, 'at its ready, and now');
    send(2, 'state', stateOf(binary, 't'), binary);
    for (const text of result) print(text);
    assert.deepEqual(
      [link.view.delivery?.state?.binary.length, link.view.delivery?.result.message.turn],
      [binary.length, 't'],
    );
  });
});
