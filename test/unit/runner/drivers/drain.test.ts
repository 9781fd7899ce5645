import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, test } from 'vitest';
import { OutputReader } from '../../../../runner/drivers/drain.ts';
import type { Contained, Written } from '../../../../runner/process/contained.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** A process whose streams the test writes, and what was read of them. */
function reader() {
  const clock = new VirtualClock();
  const streams = { stdout: new PassThrough(), stderr: new PassThrough() };
  const process: { written: Written | undefined } = { written: undefined };
  const read = { text: '' };
  const take = (bytes: Buffer) => {
    read.text += bytes;
  };
  const flow = { full: false, whenRoom: () => {} };
  const output = new OutputReader(Object.assign(process, streams) as unknown as Contained, flow, clock, {
    stdout: take,
    stderr: take,
    end: () => {},
  });
  const state = { drained: 0 };
  const drain = (...args: [number?, number?]) =>
    void output.drain(...args).then(() => {
      state.drained += 1;
    });
  const write = async (name: keyof Written, text: string) => {
    streams[name].write(text);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, output, streams, process, read, state, drain, write };
}

describe('the last output of a process that has ended', () => {
  test('is waited for as far as the process wrote it, however long nothing comes', async () => {
    const { clock, process, read, state, drain, write } = reader();
    await write('stdout', 'one ');
    process.written = { stdout: 8, stderr: 2 };
    drain();
    await clock.advance(5000);
    await write('stdout', 'two ');
    await clock.advance(5000);
    assert.equal(state.drained, 0, 'of stderr something is owed');
    await write('stderr', 'in');
    await clock.advance(0);
    assert.deepEqual([state.drained, read.text], [1, 'one two in']);
  });

  test('is not waited for once its stream is closed, nor for ever', async () => {
    const closed = reader();
    closed.process.written = { stdout: 8, stderr: 0 };
    closed.drain();
    closed.streams.stdout.end();
    await once(closed.streams.stdout, 'close');
    await closed.clock.advance(100);
    assert.equal(closed.state.drained, 1);
    const held = reader();
    held.process.written = { stdout: 8, stderr: 0 };
    held.drain();
    await held.clock.advance(30_000);
    assert.equal(held.state.drained, 1);
  });

  test('that others write is waited for until nothing comes for a while, and no longer than a second', async () => {
    const { clock, process, read, state, drain, write } = reader();
    process.written = { stdout: 0, stderr: 0 };
    drain();
    for (let i = 0; i < 9; i++) {
      await clock.advance(99);
      await write('stdout', '.');
    }
    assert.equal(state.drained, 0);
    await clock.advance(100);
    assert.deepEqual([state.drained, read.text.length], [1, 9]);
    drain();
    for (let i = 0; i < 11; i++) {
      await clock.advance(95);
      await write('stdout', '.');
    }
    assert.equal(state.drained, 2);
  });

  test('is waited for by who asks at its end, beside who has asked since its answer', async () => {
    const { clock, process, state, drain, write } = reader();
    drain(5, 50);
    await clock.advance(4);
    process.written = { stdout: 2, stderr: 0 };
    await write('stdout', '.');
    drain();
    await clock.advance(60);
    await write('stdout', '.');
    assert.equal(state.drained, 1, 'the first has waited for long enough');
    await clock.advance(99);
    await write('stdout', '.');
    await clock.advance(99);
    assert.equal(state.drained, 1);
    await clock.advance(1);
    assert.equal(state.drained, 2);
  });
});

describe('the output of a process that has answered', () => {
  /** Follows whether and with what the wait for it has ended. */
  const caughtUp = ({ output }: ReturnType<typeof reader>) => {
    const end: { isRead?: boolean } = {};
    void output.caughtUp().then((isRead) => {
      end.isRead = isRead;
    });
    return end;
  };

  test('is read at once where it is counted, without any wait for silence', async () => {
    const process = reader();
    process.process.written = { stdout: 4, stderr: 2 };
    await process.write('stdout', 'text');
    const end = caughtUp(process);
    await process.clock.advance(0);
    assert.deepEqual(end, {}, 'of stderr something is owed');
    await process.write('stderr', 'in');
    assert.deepEqual(end, { isRead: true });
  });

  test('that is not counted, or does not come, is not taken for read', async () => {
    const uncounted = caughtUp(reader());
    const process = reader();
    process.process.written = { stdout: 4, stderr: 0 };
    const held = caughtUp(process);
    await process.clock.advance(30_000);
    assert.deepEqual([uncounted, held], [{ isRead: false }, { isRead: false }]);
  });
});
