import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import { Tail } from '../../../../core/text/tail.ts';
import { headOf, tailOf } from '../../../../core/text/utf8.ts';
import { TurnLog } from '../../../../runner/text/log.ts';
import { PodText } from '../../../../runner/text/pod-text.ts';

describe('text of bounded size', () => {
  test('is cut between characters at either end', () => {
    assert.equal(headOf('aé😀', 2), 'a');
    assert.equal(headOf('aé😀', 3), 'aé');
    assert.equal(tailOf('😀é', 5), 'é');
    assert.equal(tailOf('😀é', 6), '😀é');
  });
  test('the end of a long text is kept and all of it is counted', () => {
    const tail = new Tail(1000);
    for (let i = 0; i < 10_000; i++) tail.push(`line ${i}\n`);
    assert.equal(tail.bytes, 98_890);
    assert.equal(Buffer.byteLength(tail.text()), 1000);
    assert.ok(tail.text().endsWith('line 9999\n'));
  });
});

describe('the log of a turn', () => {
  test('a secret that straddles two reads, and a character that does, come out right', () => {
    let written = '';
    const log = new TurnLog(
      hiddenBy({ values: ['hunter2'] }),
      new PodText((text) => {
        written += text;
      }),
    );
    const bytes = Buffer.from('pass hunter2 é\n');
    for (const byte of bytes) log.stderr(Buffer.of(byte));
    assert.deepEqual(log.close(), { text: 'pass [REDACTED] é\n', bytes: 19, truncated: false });
    assert.equal(written, 'pass [REDACTED] é\n');
  });
  test('NUL and invalid UTF-8 do not break it', () => {
    const log = new TurnLog(hiddenBy({}), new PodText(() => {}));
    log.stdout(Buffer.from([0x61, 0, 0xff, 0xfe, 0x62]));
    assert.equal(log.close().text, 'a\0\ufffd\ufffdb');
  });
  test('keeps the last 1 MiB, and later text goes to stderr only', () => {
    let written = 0;
    const log = new TurnLog(
      hiddenBy({}),
      new PodText((text) => {
        written += text.length;
      }),
    );
    for (let i = 0; i < 30; i++) log.stdout(Buffer.alloc(100_000, 'x'));
    const closed = log.close();
    assert.deepEqual([closed.text.length, closed.bytes, closed.truncated], [1024 * 1024, 3_000_000, true]);
    log.stdout(Buffer.from('later\n'));
    assert.equal(written, 3_000_007, 'with the end of the last line of the turn');
  });
});
