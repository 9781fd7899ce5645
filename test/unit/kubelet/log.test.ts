import assert from 'node:assert/strict';
import { pbkdf2 } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { afterAll, describe, test } from 'vitest';
import { systemClock } from '../../../core/system.ts';
import { LogFile } from '../../../local/kubelet/log-file.ts';
import { type LogOptions, readLog } from '../../../local/kubelet/log-read.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-log-'));
afterAll(() => rmSync(folder, { recursive: true }));

const plain: LogOptions = { follow: false, timestamps: false };

async function read(log: LogFile, options: LogOptions = plain): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of readLog(log.path, log, options, new AbortController().signal)) pieces.push(piece);
  return Buffer.concat(pieces).toString('latin1');
}

const bytes = fc.array(fc.oneof(fc.constant(10), fc.integer({ min: 0, max: 255 })), { maxLength: 60 });
const chunks = fc.array(
  fc.oneof(
    bytes.map((list) => Buffer.from(list)),
    fc.integer({ min: 16_000, max: 40_000 }).map((length) => Buffer.alloc(length, 'x')),
  ),
  { maxLength: 8 },
);

describe('a container log', () => {
  test('gives back exactly the bytes that were written, whatever their pieces', async () => {
    await fc.assert(
      fc.asyncProperty(chunks, async (written) => {
        const log = new LogFile(join(folder, 'log'), systemClock);
        for (const chunk of written) log.write('stdout', chunk);
        log.close();
        assert.equal(await read(log), Buffer.concat(written).toString('latin1'));
        for (const line of readFileSync(log.path, 'latin1').split('\n').slice(0, -1)) {
          assert.match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stdout [FP] /);
          assert.ok(line.length <= 16 * 1024 + 50, 'an entry is at most 16 KiB of text');
        }
      }),
      { numRuns: 100 },
    );
  });

  test('has the last lines at its tail', async () => {
    const lines = fc.array(fc.stringMatching(/^[a-z]{0,40}$/), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(lines, fc.integer({ min: 0, max: 35 }), async (written, tailLines) => {
        const log = new LogFile(join(folder, 'log'), systemClock);
        for (const line of written) log.write('stderr', Buffer.from(`${line}\n`));
        log.close();
        const expected = written.slice(Math.max(0, written.length - tailLines)).map((line) => `${line}\n`);
        assert.equal(await read(log, { ...plain, tailLines }), tailLines === 0 ? '' : expected.join(''));
      }),
      { numRuns: 100 },
    );
  });

  test('never grows beyond its limit, and a follower that keeps up sees all of it', async () => {
    const log = new LogFile(join(folder, 'log'), systemClock, 1_000);
    const following = readLog(log.path, log, { ...plain, follow: true }, new AbortController().signal);
    let written = '';
    for (let number = 0; number < 200; number++) {
      const line = `line ${number}\n`;
      written += line;
      log.write('stdout', Buffer.from(line));
      assert.ok(readFileSync(log.path).length <= 1_000);
      assert.equal((await following.next()).value?.toString(), line);
    }
    log.close();
    assert.equal((await following.next()).done, true);
    const kept = await read(log);
    assert.ok(kept.length < written.length && written.endsWith(kept));
  });

  test('is read once by a follower, also where a new file is begun just when it begins', async () => {
    const log = new LogFile(join(folder, 'log'), systemClock, 100);
    log.write('stdout', Buffer.from('first\n'));
    // A read that is left to another thread comes after the new file.
    const busy = Array.from({ length: 8 }, () => promisify(pbkdf2)('', '', 100_000, 64, 'sha512'));
    const following = readLog(log.path, log, { ...plain, follow: true }, new AbortController().signal);
    const begun = following.next();
    log.write('stdout', Buffer.from(`last${'x'.repeat(40)}\n`));
    await Promise.all(busy);
    log.close();
    let text = String((await begun).value);
    for await (const piece of following) text += piece;
    assert.equal(text, `first\nlast${'x'.repeat(40)}\n`);
  });

  test('keeps its file while no new one can be begun', async () => {
    const log = new LogFile(join(folder, 'kept'), systemClock, 200);
    // Nothing can be moved to where a directory is, nor be opened for writing there.
    mkdirSync(`${log.path}.new`);
    mkdirSync(`${log.path}.1`);
    for (let number = 0; number < 10; number++) log.write('stdout', Buffer.from(`line ${number}\n`));
    assert.match(await read(log), /^line 0\n(line \d\n)*$/);
    rmdirSync(`${log.path}.new`);
    rmdirSync(`${log.path}.1`);
    log.write('stdout', Buffer.from(`${'last'.repeat(40)}\n`));
    log.close();
    assert.equal(await read(log), `${'last'.repeat(40)}\n`);
  });
});
