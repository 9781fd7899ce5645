import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { parseFlag, readInput, refuseMissingInput } from '../../../../cli/input/input.ts';
import { MAX_INPUT_BYTES } from '../../../../core/resources/limits.ts';
import type { SessionClassSpec } from '../../../../core/resources/sessionclass.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const cwd = mkdtempSync(join(tmpdir(), 'berth-cli-input-'));
afterAll(() => rmSync(cwd, { recursive: true }));

/** A caller with this stdin: as a pipe, or as something that says nothing about an input. */
function cli(stdin = '', isPiped = false) {
  const lines: string[] = [];
  const read = { done: false };
  const source = {
    isPiped,
    close: () => {},
    async *[Symbol.asyncIterator]() {
      read.done = true;
      // Cut within a character.
      const bytes = Buffer.from(stdin);
      for (let at = 0; at < bytes.length; at += 3) yield bytes.subarray(at, at + 3);
    },
  };
  return { cwd, stdin: source, clock: new VirtualClock(), say: (line: string) => lines.push(line), lines, read };
}
const piped = (stdin: string) => cli(stdin, true);
const file = (name: string, content: string | Buffer) => {
  writeFileSync(join(cwd, name), content);
  return name;
};
const refuses = (flags: object, message: RegExp, asText = false, from = cli()) =>
  assert.rejects(readInput(flags, from, { asText }), (error: { exitCode: number; message: string }) => {
    assert.equal(error.exitCode, 2);
    assert.match(error.message, message);
    return true;
  });

describe('the input of a turn', () => {
  test('is the JSON of --input', async () => {
    assert.deepEqual(await readInput({ input: ' {"n": [1, null]} ' }, cli()), { n: [1, null] });
  });
  test('may have 64 levels, and is refused with the position where it has more', async () => {
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    await readInput({ input: nested(64) }, cli());
    await refuses({ input: `{"a":${nested(64)}}` }, /^--input: more than 64 arrays and objects .* at a(\[0\]){63};/);
    await refuses({ inputFile: file('deep.json', nested(60_000)) }, /^--input-file deep\.json: more than 64/);
  });
  test('is the JSON of a file, also one that begins with a byte order mark', async () => {
    assert.deepEqual(await readInput({ inputFile: file('a.json', '\ufeff{"a": "é"}\n') }, cli()), { a: 'é' });
  });
  test('is the JSON of stdin', async () => {
    assert.deepEqual(await readInput({ inputFile: '-' }, cli('{"a": "é😀"}')), { a: 'é😀' });
  });
  test('is undefined when none is given, and a stdin that is no pipe is not read', async () => {
    const caller = cli('{"a": 1}');
    assert.equal(await readInput({}, caller), undefined);
    assert.equal(caller.read.done, false);
  });
  test('is the JSON of a pipe when no flag gives it, and an empty pipe gives none', async () => {
    assert.deepEqual(await readInput({}, piped('{"a": "é😀"}\n')), { a: 'é😀' });
    assert.equal(await readInput({}, piped('')), undefined);
    assert.equal(await readInput({}, piped('null')), null);
  });
  test('of a flag leaves the pipe for others, such as the rest of a loop', async () => {
    for (const flags of [{ input: '1' }, { text: '1' }, { textFile: file('one.txt', '1') }]) {
      const caller = piped('{"a": 1}');
      await readInput(flags, caller);
      assert.equal(caller.read.done, false, JSON.stringify(flags));
    }
  });
  test('is not looked for in a pipe that another flag reads, and two flags cannot read it', async () => {
    const caller = piped('{"a": 1}');
    assert.equal(await readInput({}, caller, { stdinTaken: true }), undefined);
    assert.equal(caller.read.done, false);
    for (const flags of [{ inputFile: '-' }, { textFile: '-' }]) {
      await assert.rejects(readInput(flags, caller, { stdinTaken: true }), { exitCode: 2, message: /once only/ });
    }
  });
  test('is a text unchanged, of --text, a file or stdin', async () => {
    const text = ' {"n": 1} é\n';
    assert.equal(await readInput({ text }, cli()), text);
    assert.equal(await readInput({ text: '' }, cli()), '');
    assert.equal(await readInput({ text: '-' }, cli('x')), '-');
    assert.equal(await readInput({ textFile: file('prompt.md', text) }, cli()), text);
    assert.equal(await readInput({ textFile: '-' }, cli(text), { asText: true }), text);
    assert.equal(await readInput({ textFile: '-' }, cli('')), '');
    assert.equal(await readInput({ textFile: file('marked.txt', '\ufeffé') }, cli()), '\ufeffé');
  });
  test('that is text of more than 128 KiB as JSON is refused', () =>
    refuses({ text: '"'.repeat(MAX_INPUT_BYTES / 2) }, /^--text: the input has 131074 bytes as JSON/));
  test('of a pipe that stays open is waited for, and that is said after two seconds', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    async function* late() {
      await promise;
      yield Buffer.from('7');
    }
    const { clock, say, lines } = cli();
    const given = readInput({}, { cwd, clock, say, stdin: Object.assign(late(), { isPiped: true, close: () => {} }) });
    await clock.advance(1_999);
    assert.deepEqual(lines, []);
    await clock.advance(1);
    assert.deepEqual(lines, [
      'waiting for the end of stdin, which is read as the input; for a turn without one add: </dev/null',
    ]);
    resolve();
    assert.equal(await given, 7);
    const prompt = piped('7');
    await readInput({}, prompt);
    await prompt.clock.advance(10_000);
    assert.deepEqual(prompt.lines, []);
  });
  test('of exactly 128 KiB is taken, a byte more is refused with both sizes', async () => {
    const most = JSON.stringify('x'.repeat(MAX_INPUT_BYTES - 2));
    assert.equal(JSON.stringify(await readInput({ input: most }, cli())), most);
    await refuses({ inputFile: file('big.json', `${most.slice(0, -1)}x"`) }, /131073 bytes.*131072/);
  });
  test('larger than any indentation explains is refused without reading it to its end', async () => {
    await refuses({ inputFile: '/dev/zero' }, /more than 8192 KiB/);
  });

  test('from two flags is refused', async () => {
    await refuses({ input: '1', inputFile: '-' }, /^--input and --input-file are both given/);
    await refuses({ textFile: 'a', text: '' }, /^--text and --text-file are both given/);
  });
  test('that is no JSON is refused with the position', () => refuses({ input: '{"a":1,}' }, /line 1, column 8/));
  const hints: [input: string, hint: RegExp][] = [
    ['hello', /\nTo give it as text: --text hello$/],
    ["it's late", /\nTo give it as text: --text 'it'\\''s late'$/],
    ['$HOME; `id`', /\nTo give it as text: --text '\$HOME; `id`'$/],
    ['x'.repeat(81), /\nTo give it as text: --text TEXT$/],
    ['{n: 3}', /\nKeys and strings need double quotes: --input '\{"n": 3\}'$/],
    ['{"n": 3,}', /found "}"$/],
    ['"open', /the string is not closed$/],
    ['', /the text ends$/],
  ];
  for (const [input, hint] of hints) {
    test(`that is ${input.slice(0, 20) || 'empty'} is refused with the way to write it, if that can be guessed`, () =>
      refuses({ input }, hint));
  }
  test('that is no JSON in a pipe or a file is refused with the flag that takes text', async () => {
    await refuses(
      {},
      /^stdin is not JSON: line 1, column 1: .*\nTo give it as text: --text-file -\n/,
      false,
      piped('hello'),
    );
    await refuses({}, /^stdin is not JSON: line 2, column 1: .*the text ends/, false, piped('\n'));
    await refuses(
      { inputFile: file('a.md', '# A') },
      /^--input-file a\.md is not JSON: .*\nTo give it as text: --text-file a\.md$/,
    );
  });
  test('that another flag takes as JSON is told with its quotes', () => {
    assert.throws(() => parseFlag('--response', 'yes'), { message: /--response '"yes"'$/ });
    assert.deepEqual(parseFlag('--response', '{"a":1}'), { a: 1 });
  });
  test('that names a file is refused with the flag that reads it', () =>
    refuses({ input: file('req.json', '1') }, /--input-file req\.json/));
  test('that names a file after an @ is refused with the flag that reads it', () =>
    refuses({ input: `@${file('req2.json', '1')}` }, /\nTo read the file req2\.json: --input-file req2\.json$/));
  test('from a file that does not exist is refused with its path', () =>
    refuses({ inputFile: 'none.json' }, new RegExp(`there is no file ${join(cwd, 'none.json')}`)));
  test('from a directory is refused', () => refuses({ inputFile: '.' }, /is a directory/));
  test('that is not UTF-8 is refused', () =>
    refuses({ inputFile: file('latin1.json', Buffer.from([0x22, 0xe9, 0x22])) }, /not UTF-8/));
  test('with a number that would become another one is refused with its path', async () => {
    const advice = 'cannot be kept exactly; write it as a string:';
    for (const number of ['12345678901234567890', '1e999', '0.1234567890123456789012', '-9223372036854775809']) {
      const input = `{"ids": [1, {"of": ${number}}]}`;
      const message = `--input: ids[1].of: the number ${number} ${advice} "${number}"`;
      await assert.rejects(readInput({ input }, cli()), { exitCode: 2, message });
    }
    await refuses({ input: '1e999' }, /^--input: the number 1e999 cannot be kept exactly/);
    assert.deepEqual(await readInput({ input: '[9007199254740992, 0.1, 1e21]' }, cli()), [2 ** 53, 0.1, 1e21]);
  });
  test('with half of a surrogate pair is refused by its path, as an API server would change it', async () => {
    const advice = 'has half of a surrogate pair';
    for (const [input, place] of [
      ['{"list": [1, {"of": "a\\ud800b"}]}', '--input: list[1].of'],
      ['{"list": {"\\udc00": 1}}', '--input: list["\\udc00"]'],
      ['"\\ude00\\ud83d"', '--input'],
    ] as const) {
      const error = await readInput({ input }, cli()).then(
        () => assert.fail('it was taken'),
        (refusal: Error) => refusal,
      );
      assert.ok(error.message.startsWith(`${place} ${advice}`), error.message);
    }
    assert.equal(await readInput({ input: '"\\ud83d\\ude00"' }, cli()), '😀');
  });
  test('of UTF-16 is refused by that name', async () => {
    for (const bytes of [
      [0xff, 0xfe, 0x31, 0],
      [0xfe, 0xff, 0, 0x31],
    ]) {
      await refuses(
        { inputFile: file('utf16.json', Buffer.from(bytes)) },
        /utf16\.json is UTF-16 text; write it in UTF-8/,
      );
    }
  });
  test('keeps every digit of an integer of 64 bits', async () => {
    const input = '[9007199254740993,9223372036854775807,-9223372036854775808]';
    assert.equal(JSON.stringify(await readInput({ input }, cli())), input);
  });
  test('that is no string is refused where the program gets it as text', () =>
    refuses({ input: '{"a": 1}' }, /^--input-as text: the input has to be a string; give it with --text or/, true));
});

describe('a turn without an input', () => {
  const shell = { agent: { driver: 'Shell' } } as SessionClassSpec;
  test('is refused where the agent needs one, with the flags that give it', () => {
    for (const none of [undefined, null]) {
      assert.throws(() => refuseMissingInput(none, undefined, shell), {
        exitCode: 2,
        message:
          'there is no input, and the driver Shell needs an object with a "command"; give it with --text TEXT, --input JSON, --text-file FILE or --input-file FILE, or pipe JSON into the command',
      });
    }
    assert.throws(() => refuseMissingInput(undefined, { input: 'Text' }, {} as SessionClassSpec), /needs a string/);
  });
  test('is taken where the agent needs none, or the class is not known', () => {
    refuseMissingInput(undefined, { driver: 'Server' }, shell);
    refuseMissingInput(undefined, undefined, {} as SessionClassSpec);
    refuseMissingInput(undefined, { input: 'Text' }, undefined);
    refuseMissingInput('', { input: 'Text' }, {} as SessionClassSpec);
  });
});
