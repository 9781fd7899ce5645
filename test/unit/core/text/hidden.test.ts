import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { HEURISTICS, type Heuristics, hiddenBy, isTooShort } from '../../../../core/text/hidden.ts';
import { Pattern } from '../../../../core/text/pattern.ts';
import { redact } from '../../../../core/text/redact.ts';
import { TurnLog } from '../../../../runner/text/log.ts';
import { PodText } from '../../../../runner/text/pod-text.ts';
import { LEAKS } from '../../../support/leaks.ts';

const R = '[REDACTED]';

describe('scopes of redaction', () => {
  const guess = 'api_key=lambda_of_x';
  const table: Record<Heuristics, { errors: boolean; logs: boolean; outputs: boolean }> = {
    Errors: { errors: true, logs: false, outputs: false },
    ErrorsAndLogs: { errors: true, logs: true, outputs: false },
    Everything: { errors: true, logs: true, outputs: true },
    Off: { errors: false, logs: false, outputs: false },
  };
  for (const heuristics of [undefined, ...HEURISTICS]) {
    for (const place of ['errors', 'logs', 'outputs'] as const) {
      const guessed = table[heuristics ?? 'ErrorsAndLogs'][place];
      const options = { values: ['correct-horse'], patterns: [new Pattern('acct-\\d{4}')], heuristics };
      const rules = hiddenBy(options)[place];
      test(`heuristics ${heuristics ?? 'not set'}: guesses are ${guessed ? 'hidden in' : 'left in'} ${place}, values and patterns hidden`, () => {
        const shown = redact(`${guess} correct-horse acct-1234`, rules);
        assert.equal(shown, `${guessed ? `api_key=${R}` : guess} ${R} ${R}`);
      });
    }
  }

  test('a value of fewer than eight characters is hidden in errors and logs, and stays in outputs', () => {
    const hidden = hiddenBy({ values: ['root', 'seven77', '  seven77\n', 'eight888', 'abc'] });
    const text = 'root seven77 eight888 abc';
    assert.equal(redact(text, hidden.outputs), `root seven77 ${R} abc`);
    for (const place of ['errors', 'logs'] as const) assert.equal(redact(text, hidden[place]), `${R} ${R} ${R} abc`);
    assert.deepEqual(['', ' \n', 'root', ' seven77\n', 'eight888'].map(isTooShort), [false, false, true, true, false]);
  });

  test('a line of a Secret that sets a short value is hidden in logs, and stays in outputs; a whole value of that shape does not', () => {
    const hidden = hiddenBy({
      values: ['admin: pw'],
      parts: [
        'apiVersion: v1',
        'contexts:',
        '- name: kind',
        'DEBUG = true',
        'token: 0123456789',
        'A=01234567',
        'x-y'.repeat(3),
      ],
    });
    const manifest = 'apiVersion: v1\n- name: kind\ncontexts:\nDEBUG = true';
    assert.equal(redact(manifest, hidden.outputs), manifest);
    assert.equal(redact(manifest, hidden.logs), `${R}\n${R}\n${R}\n${R}`);
    const others = 'admin: pw\ntoken: 0123456789\nA=01234567\nx-yx-yx-y';
    assert.equal(redact(others, hidden.outputs), `${R}\n${R}\n${R}\n${R}`);
  });

  test('source code is left in outputs, with Secrets given', () => {
    const { outputs } = hiddenBy({ values: ['root', 'correct-horse'] });
    for (const code of [
      'sorted(xs, key=lambda x: x[1])',
      'primary_key=True, secret=secrets.token_hex(16)',
      '<li key={item.id}>',
      'login(user, password=password)',
      "headers = {'Authorization': 'Bearer ' + token, 'x': 'Bearer 0123456789'}",
      'api = "sk-0123456789abcdef"',
      'chown root:root /root',
    ]) {
      assert.equal(redact(code, outputs), code);
    }
  });
});

describe('a leak on stderr', () => {
  for (const [line, secret] of LEAKS) {
    test(`is hidden in log and error, however it is cut: ${line.replace(secret, '…')}`, () => {
      fc.assert(
        fc.property(fc.array(fc.nat(line.length), { maxLength: 6 }), (cuts) => {
          let written = '';
          const log = new TurnLog(
            hiddenBy({}),
            new PodText((text) => {
              written += text;
            }),
          );
          const places = [0, ...cuts.sort((a, b) => a - b), line.length];
          for (const [i, to] of places.slice(1).entries()) log.stderr(Buffer.from(line.slice(places[i], to)));
          for (const text of [log.errorTail(), log.close().text, written]) {
            assert.ok(text.includes(R) && !text.includes(secret), text);
          }
        }),
        { numRuns: 20 },
      );
    });
  }

  test('is hidden in the error although the log shows it: heuristics Errors', () => {
    for (const [line, secret] of LEAKS) {
      // An error quotes a long text from any offset on.
      const text = `${line} ${'x'.repeat(2040)}\n`;
      let written = '';
      const log = new TurnLog(
        hiddenBy({ heuristics: 'Errors' }),
        new PodText((piece) => {
          written += piece;
        }),
      );
      log.stderr(Buffer.from(text));
      const tail = log.errorTail();
      for (let at = 0; at + 5 <= secret.length; at++) assert.ok(!tail.includes(secret.slice(at, at + 5)), tail);
      log.close();
      assert.equal(written, text);
    }
  });
});
