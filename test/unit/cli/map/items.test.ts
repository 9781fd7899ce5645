import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Cli } from '../../../../cli/cli.ts';
import { readItems } from '../../../../cli/map/items.ts';
import { mapName, sessionNames } from '../../../../cli/map/names.ts';
import { runAll } from '../../../../cli/map/pool.ts';
import { Progress } from '../../../../cli/map/progress.ts';

const read = (text: string | Buffer, asText = false, pieceBytes = 7) => {
  const bytes = Buffer.from(text);
  async function* stdin() {
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  }
  return readItems('-', { cwd: '/', stdin: stdin() } as unknown as Cli, { asText });
};

describe('the items of a map', () => {
  test('are the JSON values of the lines, whatever their pieces and line ends', async () => {
    const text = '{"n": 1}\r\n"é\u2028"\n9007199254740993';
    const expected = [
      '{"line":1,"input":{"n":1}}',
      '{"line":2,"input":"é\u2028"}',
      '{"line":3,"input":9007199254740993}',
    ];
    for (const pieces of [1, 7, 1000]) {
      assert.deepEqual(
        (await read(text, false, pieces)).map((item) => JSON.stringify(item)),
        expected,
      );
      assert.deepEqual((await read(`${text}\n`, false, pieces)).length, 3);
    }
    assert.deepEqual(await read(''), []);
  });
  const broken: [what: string, text: string | Buffer, asText: boolean, message: RegExp][] = [
    ['no JSON', `${'1\n'.repeat(999)}{n: 1}\n2\n`, false, /^stdin line 1000 is not JSON: column 2/],
    ['no value', '1\n\n2\n', false, /^stdin line 2 is empty; write one JSON value on each line/],
    ['no string for --input-as text', '"a"\n1\n', true, /^stdin line 2: --input-as text: the input has to be a string/],
    ['a number that would be rounded', '1\n0.12345678901234567890\n', false, /^stdin line 2: .*cannot be kept exactly/],
    ['too much', `1\n"${'x'.repeat(140_000)}"\n`, false, /^stdin line 2: the input has 140002 bytes/],
    ['no UTF-8', Buffer.from([0x31, 0x0a, 0xff]), false, /^stdin line 2 is not UTF-8 text/],
  ];
  for (const [what, text, asText, message] of broken) {
    test(`are refused with the line of the first that is wrong: ${what}`, async () => {
      await assert.rejects(read(text, asText, 4096), { exitCode: 2, message });
    });
  }
});

describe('the names of a map', () => {
  const items = (...inputs: unknown[]) => inputs.map((input, i) => ({ line: i + 1, input }));
  const settings = { class: 'default' };
  test('are the same for the same settings and inputs, wherever the line is', () => {
    const [a, b] = sessionNames('m', settings, items({ x: 1, y: 2 }, 'b'));
    assert.deepEqual(sessionNames('m', settings, items('new', 'b', { y: 2, x: 1 })).slice(1), [b, a]);
    assert.match(String(a), /^m-[0-9a-f]{12}$/);
    assert.equal(mapName(settings), mapName({ ...settings }));
  });
  test('differ by settings and input, and are numbered for equal inputs', () => {
    const [a, again, other] = sessionNames('m', settings, items(1, 1, '1'));
    assert.equal(again, `${a}-2`);
    assert.notEqual(other, a);
    assert.notEqual(sessionNames('m', { class: 'other' }, items(1))[0], a);
    assert.notEqual(mapName(settings), mapName({ class: 'other' }));
  });
});

describe('a pool', () => {
  /** Runs items that end when the test lets them. */
  function start(count: number, options: { max: number; isOrdered?: boolean; signal?: AbortSignal }) {
    const running = new Map<number, { end: (result: number) => void; fail: (error: Error) => void }>();
    const taken: number[] = [];
    const run = (item: number, signal: AbortSignal) =>
      new Promise<number>((resolve, reject) => {
        running.set(item, { end: resolve, fail: reject });
        signal.addEventListener('abort', () => reject(signal.reason));
      }).finally(() => running.delete(item));
    const ended = runAll(
      Array.from({ length: count }, (_, i) => i),
      { isOrdered: true, signal: new AbortController().signal, ...options },
      run,
      async (result) => void taken.push(result),
    );
    return { running, taken, ended };
  }
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  test('runs at most as many items at once as it may, and hands over results in their order', async () => {
    const { running, taken, ended } = start(4, { max: 2 });
    assert.deepEqual([...running.keys()], [0, 1]);
    running.get(1)?.end(1);
    await settle();
    assert.deepEqual([[...running.keys()], taken], [[0, 2], []]);
    running.get(0)?.end(0);
    await settle();
    assert.deepEqual(
      [[...running.keys()], taken],
      [
        [2, 3],
        [0, 1],
      ],
    );
    running.get(3)?.end(3);
    running.get(2)?.end(2);
    await ended;
    assert.deepEqual(taken, [0, 1, 2, 3]);
  });
  test('hands over results as they come where order does not matter', async () => {
    const { running, taken, ended } = start(2, { max: 2, isOrdered: false });
    running.get(1)?.end(1);
    await settle();
    assert.deepEqual(taken, [1]);
    running.get(0)?.end(0);
    await ended;
  });
  test('ends all items at the first error, and rejects once they have ended', async () => {
    const { running, ended } = start(5, { max: 3 });
    running.get(1)?.fail(new Error('refused'));
    await assert.rejects(ended, /refused/);
    assert.equal(running.size, 0);
  });
  test('begins nothing after its signal, and rejects with its reason', async () => {
    const stop = new AbortController();
    const { running, ended } = start(5, { max: 2, signal: stop.signal });
    stop.abort(new Error('Ctrl-C'));
    await assert.rejects(ended, /Ctrl-C/);
    assert.equal(running.size, 0);
  });
});

test('progress is a line that changes on a terminal, otherwise a line every ten seconds', () => {
  const lines: string[] = [];
  let now = 0;
  const cli = { say: (line: string) => lines.push(line), clock: { monotonic: () => now } } as unknown as Cli;
  const quiet = new Progress('m', 3, cli);
  quiet.begin();
  quiet.count(true);
  now = 12_000;
  quiet.count(false);
  quiet.end();
  quiet.finish();
  assert.deepEqual(lines, ['m: 2 of 3 done, 1 failed, 1 running, 12s', 'm: 2 of 3 done, 1 failed, 12s']);
  const shown: string[] = [];
  new Progress('m', 3, { ...cli, status: (line) => shown.push(line) }).begin();
  assert.deepEqual(shown, ['m: 0 of 3 done, 1 running, 0s']);
});
