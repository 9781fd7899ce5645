import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { type Block, MarkerScanner } from '../../../../core/text/markers.ts';

const START = '<<<START 1>>>';
const END = '<<<END 1>>>';

function scan(pieces: Buffer[], maxBytes = 1000): { block: Block; log: string } {
  let log = Buffer.alloc(0);
  const onLog = (bytes: Buffer) => {
    log = Buffer.concat([log, bytes]);
  };
  const scanner = new MarkerScanner({ start: START, end: END, maxBytes, onLog });
  for (const piece of pieces) scanner.push(piece);
  return { block: scanner.end(), log: log.toString() };
}

const scanText = (text: string) => scan([Buffer.from(text)]);
const found = (text: string): Block => ({ type: 'Found', bytes: Buffer.from(text) });

describe('result markers', () => {
  test('text between the markers is the result, text outside is log', () => {
    assert.deepEqual(scanText(`a${START}x${END}\nb`), { block: found('x'), log: 'ab' });
  });
  test('markers count within a line and across lines', () => {
    assert.deepEqual(scanText(`noise ${START}\n{\n}\n${END} more`), { block: found('\n{\n}\n'), log: 'noise  more' });
  });
  test('the last complete pair wins', () => {
    assert.deepEqual(scanText(`${START}1${END}${START}2${END}${START}3`).block, found('2'));
  });
  test('a start marker within a pair begins it anew', () => {
    assert.deepEqual(scanText(`${START}half${START}whole${END}`), { block: found('whole'), log: 'half' });
  });
  test('without markers there is no result and all is log', () => {
    assert.deepEqual(scanText('nothing <<<STAR'), { block: { type: 'None' }, log: 'nothing <<<STAR' });
  });
  test('an end marker alone is log', () => {
    assert.deepEqual(scanText(`a${END}b`), { block: { type: 'None', seen: 'End' }, log: `a${END}b` });
    assert.deepEqual(scanText(`${END}\n${END}\n`).log, `${END}\n${END}\n`);
  });
  test('a start marker alone is told, what follows it is log', () => {
    assert.deepEqual(scanText(`a${START}b`), { block: { type: 'None', seen: 'Start' }, log: 'ab' });
  });
  test('markers of another turn are log', () => {
    assert.deepEqual(scanText('<<<START 2>>>x<<<END 2>>>').block, { type: 'None' });
  });
  test('text that no marker can begin with is handed on at once', () => {
    let log = '';
    const onLog = (bytes: Buffer) => {
      log += bytes;
    };
    const scanner = new MarkerScanner({ start: START, end: END, maxBytes: 1000, onLog });
    scanner.push(Buffer.from('short\n'));
    assert.equal(log, 'short\n');
    scanner.push(Buffer.from('a < b <<<STA'));
    assert.equal(log, 'short\na < b ');
    scanner.push(Buffer.from('Y'));
    assert.equal(log, 'short\na < b <<<STAY');
  });
  test('a result longer than may be held is told with its length', () => {
    const { block } = scan([Buffer.from(`${START}${'x'.repeat(2000)}${END}`)]);
    assert.deepEqual(block, { type: 'TooLarge', bytes: 2000 });
  });
  test('a good result after one that was too large counts', () => {
    const { block } = scan([Buffer.from(`${START}${'x'.repeat(2000)}${END}${START}y${END}`)]);
    assert.deepEqual(block, found('y'));
  });

  test('any split of the stream gives the same result, and nothing but markers is lost from the log', () => {
    const word = fc.constantFrom(START, END, '<<<', 'START', '<<<START 1', '>>>', '\n', 'x', '{}', '<', 'é');
    fc.assert(
      fc.property(fc.array(word, { maxLength: 30 }), fc.array(fc.nat(200), { maxLength: 10 }), (words, cuts) => {
        const whole = Buffer.from(words.join(''));
        const pieces = [];
        let at = 0;
        for (const cut of [...cuts, whole.length].sort((a, b) => a - b)) {
          pieces.push(whole.subarray(at, Math.max(at, cut)));
          at = Math.max(at, cut);
        }
        assert.deepEqual(scan(pieces), scan([whole]));
        const expected = new RegExp(`${START}((?:(?!${START}).)*?)${END}`, 'gs');
        const last = [...whole.toString().matchAll(expected)].at(-1);
        const open = whole.includes(START) ? 'Start' : whole.includes(END) ? 'End' : undefined;
        const none: Block = { type: 'None', ...(open && { seen: open }) };
        assert.deepEqual(scan([whole]).block, last ? found(last[1] ?? '') : none);
      }),
      { numRuns: 2000 },
    );
  });
});
