import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { AttachLimit } from '../../../controller/link/attach-limit.ts';
import { framesInLog } from '../../../controller/link/ended-log.ts';
import { Link } from '../../../controller/link/link.ts';
import { Silences } from '../../../controller/link/silences.ts';
import { frameText, readyText } from '../../../core/frames/encode.ts';
import { frameKeys } from '../../../core/frames/seal.ts';
import { PART_BYTES, packMessage } from '../../../core/frames/wire.ts';
import { silentLogger } from '../../../core/system.ts';
import { PodRunner } from '../../support/pod-runner.ts';
import { seededRandom } from '../../support/random.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

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
function read(log: string) {
  const clock = new VirtualClock();
  const link = new Link({
    api: new PodRunner(clock, random),
    clock,
    random,
    answers: { at: 0 },
    lingerMs: 60_000,
    limit: new AttachLimit(1, clock),
    silences: new Silences(clock),
    priority: () => 'WaitedFor',
    log: silentLogger,
    pod: { namespace: 'team', name: 'pod', uid: 'pod-1' },
    ...ADDRESS,
    keys: {
      current: { id: 'k', key: MASTER },
      byId: new Map([
        ['old', OLD],
        ['k', MASTER],
      ]),
    },
    epoch: () => 5,
    nextNumber: () => 1,
    onChange: () => {},
    onLaterEpoch: () => {},
  });
  link.takeLog(Buffer.from(log));
  return link.view;
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

  test('gives every frame, whatever lines of text stand between theirs', () => {
    fc.assert(
      fc.property(fc.array(fc.array(textLine, { maxLength: 3 }), { minLength: 1, maxLength: 12 }), (texts) => {
        const log = whole.flatMap((line, index) => [line, ...(texts[index % texts.length] ?? [])]).join('\n');
        const view = read(`${ready}${log}\n`);
        assert.equal(view.delivery?.result.message.turn, 't');
        assert.equal(String(view.delivery?.result.message.output).length, PART_BYTES * 2);
      }),
      { numRuns: 200 },
    );
  });
  test('may have pieces of a longer line of text in front of any line of a frame', () => {
    const piece = 'A'.repeat(16 * 1024);
    for (let at = 0; at < whole.length; at++) {
      for (const pieces of [piece, piece + piece]) {
        const log = whole.map((line, index) => (index === at ? pieces + line : line)).join('\n');
        assert.equal(read(`${log}\nrest of it\n`).delivery?.result.message.turn, 't', `in front of line ${at}`);
      }
    }
  });
  test('that was rotated gives what is left of it', () => {
    const log = lines([
      ...frame(17, 'bound', bound),
      ...frame(19, 'result', result('t')),
      ...frame(23, 'bye', { reason: 'Signal', message: '' }),
    ]);
    const view = read(`${['rest of a line', ...log.slice(1)].join('\n')}\n`);
    assert.equal(view.delivery?.result.message.turn, 't');
    assert.equal(view.phase, 'Ended');
    assert.equal(view.resumed, true);
  });
  test('gives the result of the last turn where it holds those of several', () => {
    const log = ['t1', 't2', 't3'].flatMap((turn, index) => frame(index + 1, 'result', result(turn))).join('');
    assert.equal(read(log).delivery?.result.message.turn, 't3');
  });
  test('gives the result of a turn that ended before its request was answered', () => {
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
    const view = read([...frame(1, 'approval', asks), ...frame(2, 'result', result('t'))].join(''));
    assert.equal(view.delivery?.result.message.turn, 't');
    assert.equal(view.asking, undefined);
  });
  test('is opened with an older master key where that is the one', () => {
    const log = frame(1, 'result', result('t'), { ...channel, key: keyOf(OLD) }).join('');
    assert.equal(read(log).delivery?.result.message.turn, 't');
  });
  test('names its boot by a frame that opens, not by text that comes first', () => {
    const fake = frame(1, 'result', result('t'), { ...channel, boot: 'cd'.repeat(16) }).join('');
    const log = frame(1, 'result', result('t')).join('');
    const view = read(`{"boot":"${'ef'.repeat(16)}"}\n${fake}${log}`);
    assert.equal(view.delivery?.result.message.turn, 't');
  });
  test('of another incarnation, session or pod gives nothing', () => {
    for (const of of [
      { ...channel, incarnation: 2 },
      { ...channel, session: 'session-2' },
      { ...channel, key: frameKeys(MASTER, { session: 'session-1', podUID: 'pod-2', boot: BOOT }).up },
    ]) {
      const view = read(frame(1, 'result', result('t'), of).join(''));
      assert.deepEqual([view.delivery, view.resumed], [undefined, false]);
    }
  });
  test('without any frame says nothing about its runner', () => {
    assert.equal(
      framesInLog(Buffer.from(`${ready}some text\n`), ADDRESS, () => [keyOf(MASTER)]),
      undefined,
    );
    assert.equal(read(`${ready}some text\n`).phase, 'Opening');
  });
  test('full of text that resembles frames is read in linear time', () => {
    const flood = Array.from({ length: 3000 }, (_, index) => {
      const [start] = lines(frame(index, 'result', result('t'), { ...channel, boot: `${index}`.padStart(32, '0') }));
      return `${start}\n${'B'.repeat(400)}`;
    });
    const derived: string[] = [];
    const log = Buffer.from(`${flood.join('\n')}\n`);
    framesInLog(log, ADDRESS, (boot) => {
      derived.push(boot);
      return [keyOf(MASTER)];
    });
    assert.equal(derived.length, 16);
  });
});
