import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { readInput } from '../../../cli/input.ts';
import { MAX_INPUT_BYTES } from '../../../core/resources/limits.ts';

const cwd = mkdtempSync(join(tmpdir(), 'berth-cli-input-'));
afterAll(() => rmSync(cwd, { recursive: true }));

function cli(stdin = '') {
  async function* chunks() {
    // Cut within a character.
    const bytes = Buffer.from(stdin);
    for (let at = 0; at < bytes.length; at += 3) yield bytes.subarray(at, at + 3);
  }
  return { cwd, stdin: chunks() };
}
const file = (name: string, content: string | Buffer) => {
  writeFileSync(join(cwd, name), content);
  return name;
};
const refuses = (flags: object, message: RegExp, asText = false) =>
  assert.rejects(readInput(flags, cli(), asText), (error: { exitCode: number; message: string }) => {
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
  test('is undefined when none is given', async () => {
    assert.equal(await readInput({}, cli()), undefined);
  });
  test('of exactly 128 KiB is taken, a byte more is refused with both sizes', async () => {
    const most = JSON.stringify('x'.repeat(MAX_INPUT_BYTES - 2));
    assert.equal(JSON.stringify(await readInput({ input: most }, cli())), most);
    await refuses({ inputFile: file('big.json', `${most.slice(0, -1)}x"`) }, /131073 bytes.*131072/);
  });
  test('larger than any indentation explains is refused without reading it to its end', async () => {
    await refuses({ inputFile: '/dev/zero' }, /more than 8192 KiB/);
  });

  test('from both flags is refused', () => refuses({ input: '1', inputFile: '-' }, /both/));
  test('that is no JSON is refused with the position', () => refuses({ input: '{"a":1,}' }, /line 1, column 8/));
  test('that is a bare word is refused with the way to write it', () =>
    refuses({ input: 'hello' }, /--input '"hello"'/));
  test('that names a file is refused with the flag that reads it', () =>
    refuses({ input: file('req.json', '1') }, /--input-file req\.json/));
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
  test('keeps every digit of an integer of 64 bits', async () => {
    const input = '[9007199254740993,9223372036854775807,-9223372036854775808]';
    assert.equal(JSON.stringify(await readInput({ input }, cli())), input);
  });
  test('that is no string is refused where the program gets it as text', () =>
    refuses({ input: '{"a": 1}' }, /has to be a JSON string/, true));
});
