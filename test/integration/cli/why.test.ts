import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { Caller } from './support.ts';

const caller = new Caller(join(import.meta.dirname, '..', '..', '..', 'examples'));

beforeAll(async () => {
  await caller.ok('local', 'up', '--detach');
});
afterAll(async () => {
  await caller.berth(['local', 'down']);
  caller.remove();
});

describe('berth why', () => {
  const why = (name: string) => caller.ok('why', name);

  test('names what blocks a session, since when, what happens next, and its last events', async () => {
    await caller.ok('create', 'blocked', '--env-from-secret', 'KEY=missing/key', '--', 'true');
    await caller.ok('turn', 'blocked', '--name', 'waits', '--no-wait');
    const text = await eventually(
      async () => {
        const text = await why('blocked');
        return /^\S+ ago +Session +PodConfigError/m.test(text) ? text : undefined;
      },
      { what: 'the missing Secret is told' },
    );
    assert.match(text, /^blocked cannot take a turn\n {2}because +PodConfigError: .*"missing"/);
    assert.match(text, /^ {2}since +20\S+Z \(\S+ ago\)\n {2}next +turn waits runs once that is over/m);
    assert.match(text, /^ {2}at +20\S+Z \(in \S+\)$/m);
    assert.match(text, /^\S+ ago +Session +PodConfigError .*"missing"/m);
    assert.ok(text.split('\n').length <= 24, text);
  });
  test('says so where nothing blocks it', async () => {
    await caller.ok('create', 'free', '--', 'python3', 'notes.py');
    await caller.ok('turn', 'free', 'hello');
    // A turn ends before the status of its session says what follows.
    await caller.ok('wait', 'free', '--for=ready', '--timeout', '2m');
    assert.match(await why('free'), /^free is ready: nothing blocks it.*\n(.*\n)* {2}at +20/);
    await caller.ok('suspend', 'free', '--hold');
    assert.match(await why('free'), /^free is held .*\n(.*\n)* {2}to act +berth resume free$/m);
  });
  test('ends with 2 for a session that does not exist', async () => {
    const { code, stderr } = await caller.berth(['why', 'none']);
    assert.equal(code, 2);
    assert.match(stderr, /there is no session "none"/);
  });
});
