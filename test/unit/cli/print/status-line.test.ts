import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { StatusLine } from '../../../../cli/print/status-line.ts';

const ERASE = '\r\u001b[K';

describe('the status line', () => {
  const line = (columns = 80) => {
    const written: string[] = [];
    return {
      status: new StatusLine(
        (text) => written.push(text),
        () => columns,
      ),
      written,
    };
  };

  test('is replaced in place, erased once for something else, and then shown again', () => {
    const { status, written } = line();
    status.clear();
    for (const text of ['a', 'a', 'b']) status.show(text);
    status.clear();
    status.clear();
    status.show('b');
    assert.deepEqual(written, [`${ERASE}a`, `${ERASE}b`, ERASE, `${ERASE}b`]);
  });

  test('is cut to one line of the terminal', () => {
    const { status, written } = line(4);
    status.show('abcdef');
    assert.deepEqual(written, [`${ERASE}abc`]);
  });

  test('is away while an answer is typed, also one that ends with an error', async () => {
    const { status, written } = line();
    status.show('a');
    const asked = status.without(async () => {
      status.show('b');
      throw new Error('Ctrl-C');
    });
    await assert.rejects(asked, /Ctrl-C/);
    status.show('c');
    assert.deepEqual(written, [`${ERASE}a`, ERASE, `${ERASE}c`]);
  });
});
