import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, test } from 'vitest';
import type { TurnHooks } from '../../../../runner/drivers/driver.ts';
import { ServerProcess } from '../../../../runner/drivers/server-process.ts';
import type { Contained, Written } from '../../../../runner/process/contained.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const RESPONSE = { type: 'response', id: '1', timestamp: '2026-01-01T00:00:00Z', result: null };

/** A server that has answered, and how much stderr its keeper counts at each look. */
async function answered(counts: number[]) {
  const clock = new VirtualClock();
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const family: { written: Written | undefined } = { written: undefined };
  const survivors = async () => {
    family.written = { stdout: 0, stderr: counts.shift() ?? family.written?.stderr ?? 0 };
    return [];
  };
  const log = { text: '' };
  const stderr = (bytes: Buffer) => {
    log.text += bytes;
  };
  const hooks = { active() {}, log: { stdout() {}, stderr, flush() {} } } as unknown as TurnHooks;
  const process = Object.assign(family, streams, { survivors }) as unknown as Contained;
  const server = new ServerProcess(process, { full: false, whenRoom: () => {} }, clock, hooks);
  const answer = server.ask('1', '{}\n', hooks);
  streams.stdout.write(`${JSON.stringify(RESPONSE)}\n`);
  await answer;
  const state = { settled: false };
  void server.settle().then(() => {
    state.settled = true;
  });
  return { clock, streams, log, state };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a server that has answered', () => {
  test('has settled only when the stderr that it wrote before is in the log of its turn, however late that comes', async () => {
    const { clock, streams, log, state } = await answered([8]);
    await clock.advance(5_000);
    assert.equal(state.settled, false);
    streams.stderr.write('late');
    await turn();
    assert.equal(state.settled, false);
    streams.stderr.write('text');
    await turn();
    assert.deepEqual([state.settled, log.text], [true, 'latetext']);
  });

  test('is looked at again while it writes the rest of its stderr', async () => {
    const { streams, log, state } = await answered([4, 8]);
    streams.stderr.write('some');
    await turn();
    assert.equal(state.settled, false);
    streams.stderr.write('more');
    await turn();
    assert.deepEqual([state.settled, log.text], [true, 'somemore']);
  });
});
