import assert from 'node:assert/strict';
import { test } from 'vitest';
import { LeaveKey } from '../../../../cli/enter/terminal.ts';

/** Types pieces; returns what comes of them, and whether they leave. */
function typed(...pieces: string[]): [string, boolean] {
  const keys = new LeaveKey();
  let text = '';
  for (const piece of pieces) {
    const { bytes, leaves } = keys.take(Buffer.from(piece, 'latin1'));
    text += bytes.toString('latin1');
    if (leaves) return [text, true];
  }
  return [text, false];
}

test('a tilde and a dot at the begin of a line leave the command, however they arrive', () => {
  for (const before of ['', 'ls\n', 'ls\r']) {
    assert.deepEqual(typed(`${before}~.ls`), [before, true]);
    assert.deepEqual(typed(...`${before}~.`), [before, true]);
  }
});

test('every other byte is for the command', () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i)).toString('latin1');
  for (const text of [bytes, 'a~.', 'cd ~\r', '~/bin\r', '\x1b[200~.\x1b[201~', '~\x03', 'a\r~b~.', '~a~.']) {
    assert.deepEqual(typed(text), [text, false]);
    assert.deepEqual(typed(...text), [text, false]);
  }
});

test('two tildes at the begin of a line are one for the command, and leave it no more', () => {
  assert.deepEqual(typed('~~.\r'), ['~.\r', false]);
  assert.deepEqual(typed('~~\r~.'), ['~\r', true]);
});
