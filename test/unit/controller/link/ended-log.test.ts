import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { framesInLog } from '../../../../controller/link/ended-log.ts';
import { Link } from '../../../../controller/link/link.ts';
import { LogReader } from '../../../../controller/link/log-reader.ts';
import { nothingKept } from '../../../../controller/link/pod-counters.ts';
import { frameText, readyText } from '../../../../core/frames/encode.ts';
import { frameKeys } from '../../../../core/frames/seal.ts';
import { PART_BYTES, packMessage } from '../../../../core/frames/wire.ts';
import { silentLogger } from '../../../../core/system.ts';
import { linkOptions } from '../../../support/link-options.ts';
import { PodRunner } from '../../../support/pod-runner.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const OLD = Buffer.alloc(32, 1);
const MASTER = Buffer.alloc(32, 7);
const BOOT = 'ab'.repeat(16);
const ADDRESS = { session: 'session-1', incarnation: 1 };
const random = seededRandom();
const keyOf = (master: Buffer, boot = BOOT) => frameKeys(master, { session: 'session-1', podUID: 'pod-1', boot }).up;
const channel = { ...ADDRESS, boot: BOOT, key: keyOf(MASTER), random };

const result = (turn: string, output: unknown = 'x') => ({
  turn,
  attempt: 1,
  outcome: 'Succeeded',
  output,
  startedAt: '2026-01-01T12:00:00.000Z',
  finishedAt: '2026-01-01T12:00:01.000Z',
  state: 'Unchanged',
  leftRunning: [],
});
const BYE = { reason: 'Fault', message: '' };
const bound = { runnerVersion: '1', protocol: 1, containment: 'Keeper', hardened: true };
const frame = (seq: number, kind: string, message: object, of = channel) => [
  ...frameText(of, seq, kind, packMessage(message)),
];
const lines = (frames: string[]) => frames.join('').split('\n').slice(0, -1);
const ready = readyText({
  boot: BOOT,
  protocol: 1,
  runnerVersion: '1',
  podUID: 'pod-1',
  session: 'session-1',
  incarnation: 1,
  lastSeq: 0,
  epoch: 1,
});

/** Reads the log with a link that has never heard of the pod. */
async function read(log: string | Buffer, change: Partial<ConstructorParameters<typeof Link>[0]> = {}) {
  const clock = new VirtualClock();
  const pod = { namespace: 'team', name: 'pod', uid: 'pod-1' };
  const keys = { current: { id: 'k', key: MASTER }, byId: new Map(Object.entries({ old: OLD, k: MASTER })) };
  const options = linkOptions(new PodRunner(clock, random), { pod, key: MASTER, clock, random });
  const link = new Link({ ...options, keys, ...change });
  const taken = link.takeLog(Buffer.from(log as string));
  await finished(clock, taken);
  return link.view;
}

/** Lets the clock go on until the work is done. */
async function finished<R>(clock: VirtualClock, work: Promise<R>): Promise<R> {
  let isDone = false;
  const end = () => {
    isDone = true;
  };
  work.then(end, end);
  while (!isDone) await clock.advance(1);
  return work;
}

/** Lines of a text that a log merges into the runner's. */
const base64 = fc.base64String({ minLength: 4, maxLength: 400 }).filter((text) => text.length > 0);
// A key that nobody has: a writer that has one of the installation's keys is the runner.
const other = lines(frame(9, 'result', result('t'), { ...channel, key: keyOf(Buffer.alloc(32, 9)) }));
const textLine = fc.oneof(
  base64,
  fc.string({ maxLength: 60 }).map((text) => text.replaceAll('\n', ' ')),
  fc.constantFrom(...other, '<<<BERTH_START {}>>>', '<<<BERTH_END 2/1>>>', '', '<<<BERTH_START '),
);

describe('the log of an ended container', () => {
  const whole = lines([...frame(1, 'bound', bound), ...frame(2, 'result', result('t', 'y'.repeat(PART_BYTES * 2)))]);

  test('gives every frame, whatever lines of text stand between theirs', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(textLine, { maxLength: 3 }), { minLength: 1, maxLength: 12 }),
        async (texts) => {
          const log = whole.flatMap((line, index) => [line, ...(texts[index % texts.length] ?? [])]).join('\n');
          const view = await read(`${ready}${log}\n`);
          assert.equal(view.delivery?.result.message.turn, 't');
          assert.equal(String(view.delivery?.result.message.output).length, PART_BYTES * 2);
        },
      ),
      { numRuns: 200 },
    );
  });
  test('may have pieces of a longer line of text in front of any line of a frame', async () => {
    const piece = 'A'.repeat(16 * 1024);
    for (let at = 0; at < whole.length; at++) {
      for (const pieces of [piece, piece + piece]) {
        const log = whole.map((line, index) => (index === at ? pieces + line : line)).join('\n');
        assert.equal((await read(`${log}\nrest of it\n`)).delivery?.result.message.turn, 't', `in front of line ${at}`);
      }
    }
  });
  test('that was rotated gives what is left of it', async () => {
    const log = lines([
      ...frame(17, 'bound', bound),
      ...frame(19, 'result', result('t')),
      ...frame(23, 'bye', { reason: 'Signal', message: '' }),
    ]);
    const view = await read(`${['rest of a line', ...log.slice(1)].join('\n')}\n`);
    assert.equal(view.delivery?.result.message.turn, 't');
    assert.equal(view.phase, 'Ended');
    assert.equal(view.resumed, true);
  });
  test('gives the result of the last turn where it holds those of several', async () => {
    const log = ['t1', 't2', 't3'].flatMap((turn, index) => frame(index + 1, 'result', result(turn))).join('');
    assert.equal((await read(log)).delivery?.result.message.turn, 't3');
  });
  test('gives the result of a turn that ended before its request was answered', async () => {
    const at = '2026-01-01T12:00:00.000Z';
    const asks = {
      turn: 't',
      attempt: 1,
      id: 'ab'.repeat(8),
      prompt: '?',
      process: 'Alive',
      at,
      startedAt: at,
      ranMs: 1,
      state: 'Unchanged',
    };
    const view = await read([...frame(1, 'approval', asks), ...frame(2, 'result', result('t'))].join(''));
    assert.equal(view.delivery?.result.message.turn, 't');
    assert.equal(view.asking, undefined);
  });
  test('is opened with an older master key where that is the one', async () => {
    const log = frame(1, 'result', result('t'), { ...channel, key: keyOf(OLD) }).join('');
    assert.equal((await read(log)).delivery?.result.message.turn, 't');
  });
  test('names its boot by a frame that opens, not by text that comes first', async () => {
    const fake = frame(1, 'result', result('t'), { ...channel, boot: 'cd'.repeat(16) }).join('');
    const log = frame(1, 'result', result('t')).join('');
    const view = await read(`{"boot":"${'ef'.repeat(16)}"}\n${fake}${log}`);
    assert.equal(view.delivery?.result.message.turn, 't');
  });
  test('of another incarnation, session or pod gives nothing', async () => {
    for (const of of [
      { ...channel, incarnation: 2 },
      { ...channel, session: 'session-2' },
      { ...channel, key: frameKeys(MASTER, { session: 'session-1', podUID: 'pod-2', boot: BOOT }).up },
    ]) {
      const view = await read(frame(1, 'result', result('t'), of).join(''));
      assert.deepEqual([view.delivery, view.resumed], [undefined, false]);
    }
  });
  test('without any frame says nothing about its runner', async () => {
    assert.equal((await read(`${ready}some text\n`)).phase, 'Opening');
  });
  test('gives the last frame also where the container did not live to print its end', async () => {
    const [start, body] = lines(frame(2, 'result', result('t')));
    const log = `${frame(1, 'bound', bound).join('')}${start}\n${'A'.repeat(60)}\n${body}\nlast words\n`;
    assert.equal((await read(log)).delivery?.result.message.turn, 't');
  });
  test('gives a frame that was torn and sent again, and those after it', async () => {
    const [first, second, third] = [frame(1, 'bound', bound), frame(2, 'result', result('t')), frame(3, 'bye', BYE)];
    const log = [...first, second.join('').slice(0, 150), '\n', ...third, ...second, ...third].join('');
    const view = await read(log);
    assert.deepEqual([view.delivery?.result.message.turn, view.phase], ['t', 'Ended']);
  });
});

/** Reads the log, and tells how often a body was tried with keys, in all and at most between two pauses. */
async function counted(log: string) {
  let tries = 0;
  let since = 0;
  let triesAtOnce = 0;
  class Keys extends Array<Buffer> {
    override entries() {
      tries += 1;
      return super.entries();
    }
  }
  const pause = async () => {
    triesAtOnce = Math.max(triesAtOnce, tries - since);
    since = tries;
  };
  const cut: true[] = [];
  const keysOf = (boot: string) => Keys.from([keyOf(MASTER, boot)]) as Buffer[];
  const found = await framesInLog(Buffer.from(log), { ...ADDRESS, keysOf, pause, onCut: () => cut.push(true) });
  await pause();
  return { found, tries, cut: cut.length, triesAtOnce };
}

describe('what the reading of a log costs', () => {
  const MB = 1024 * 1024;
  const header = (seq: number, of = channel) => lines(frame(seq, 'log', {}, of))[0] as string;
  const LINE = 'A'.repeat(40);
  /** At most as many as the most that one line can add to what is done before a pause. */
  const AT_ONCE = 256 + 32;

  test('is nothing for headers without an end, whatever follows them', async () => {
    const headers = ['0', '1', '2', '3'].map((boot) => header(1, { ...channel, boot: boot.repeat(16) }));
    const { tries, cut } = await counted(`${headers.join('\n')}\n${`${LINE}\n`.repeat((10 * MB) / 41)}`);
    // The last lines may be those of a frame that the container did not live to end.
    assert.ok(tries <= 32, `${tries} tries`);
    assert.equal(cut, 0);
  });

  test('is bounded for frames that do not open, and the result after them is found', async () => {
    const forged = Array.from({ length: 32 }, () => `${LINE}\n`).join('');
    const flood = Array.from(
      { length: 2_500 },
      (_, seq) => `${header(9)}\n${forged}<<<BERTH_END ${seq % 3 ? 9 : 8}/1>>>\n`,
    );
    const { tries, triesAtOnce, cut, found } = await counted(
      `${flood.join('')}${frame(2, 'result', result('t')).join('')}`,
    );
    assert.ok(tries <= 64 * 1024 + 32 && cut === 1, `${tries} tries, cut: ${cut}`);
    assert.ok(triesAtOnce <= AT_ONCE, `${triesAtOnce} at once`);
    assert.deepEqual(
      found?.messages.map(({ seq, kind }) => [seq, kind]),
      [[2, 'result']],
    );
  });

  test('is one attempt for each frame, however many are missing between them', async () => {
    const log = Array.from({ length: 2_000 }, (_, index) => frame(2 * index + 1, 'bye', BYE).join('')).join('');
    const { found, tries, triesAtOnce } = await counted(log);
    assert.deepEqual([tries, found?.messages.length, found?.messages[1]?.seq], [2_000, 2_000, 3]);
    assert.ok(triesAtOnce <= AT_ONCE);
  });

  test('is no reason to leave out a frame of an honest log of 10 MiB', async () => {
    const state = { turn: 't', digest: '0'.repeat(64), keyId: 'k', bytes: 6 * MB };
    const large = [...frameText(channel, 4_001, 'state', packMessage(state, Buffer.alloc(6 * MB, 7)))].join('');
    const pongs = Array.from({ length: 4_000 }, (_, index) => frame(index + 1, 'bye', BYE).join('')).join('');
    const last = frame(4_002, 'result', { ...result('t'), state: { seq: 4_001, digest: state.digest } }).join('');
    const log = `${pongs}${large}${`${'text '.repeat(30)}\n`.repeat(3_000)}${last}`;
    assert.ok(log.length > 9.4 * MB, String(log.length));
    const view = await read(log, { log: { ...silentLogger, warn: (_, message) => assert.fail(message) } });
    assert.equal(view.delivery?.state?.binary.length, 6 * MB);
  });

  test('is told where it was too much', async () => {
    const warned: string[] = [];
    const counters = nothingKept();
    const flood = `${header(9)}\n${`${LINE}\n`.repeat(32)}<<<BERTH_END 8/1>>>\n<<<BERTH_END 9/1>>>\n`.repeat(2_500);
    await read(flood, { counters, log: { ...silentLogger, warn: (_, message) => warned.push(message) } });
    assert.deepEqual([warned.length, counters.logsCut], [1, 1]);
  });

  test('is that of one log at a time, and the next is read also where one fails', async () => {
    const clock = new VirtualClock();
    const reader = new LogReader(clock);
    const order: string[] = [];
    const work = (name: string) => async (pause: () => Promise<void>) => {
      for (const step of [1, 2]) {
        order.push(`${name}${step}`);
        await pause();
      }
      if (name === 'a') throw new Error('gone');
    };
    const [a, b] = [reader.read(work('a')), reader.read(work('b'))];
    await assert.rejects(finished(clock, a), /gone/);
    await finished(clock, b);
    assert.deepEqual(order, ['a1', 'a2', 'b1', 'b2']);
  });
});
