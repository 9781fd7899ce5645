import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { serverKeys } from '../../../local/apiserver/auth/keys.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const script = (code: string) => ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', code];

describe('a disk that is full', () => {
  test('does not end a program that logs', () => {
    const full = openSync('/dev/full', 'w');
    try {
      const code = `
        import { programLog } from '${ROOT}/core/program/log.ts';
        const log = programLog(1, 'info');
        for (let i = 0; i < 3000; i++) log.info({ i }, 'a line of some length, so that many of them are too many to be kept');
        console.error('alive');`;
      const { status, stderr } = spawnSync(process.execPath, script(code), { stdio: ['ignore', full, 'pipe'] });
      assert.deepEqual([status, String(stderr)], [0, 'alive\n']);
    } finally {
      closeSync(full);
    }
  });

  test('takes no half of an object, so that what is written when there is room again can be read', (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'berth-journal-'));
    t.onTestFinished(() => rmSync(dir, { recursive: true }));
    // A limit on the size of files does to a write what a full disk does: it takes a part, and refuses the rest.
    const code = `
      import { Journal } from '${ROOT}/local/apiserver/store/journal.ts';
      const { journal } = Journal.open('${dir}', { boot: 'a' });
      let version = 1;
      const append = (name, bytes) => journal.append({
        version: ++version, storage: 'x', type: 'ADDED', key: name, size: bytes,
        object: { metadata: { name, resourceVersion: String(version) }, filler: 'x'.repeat(bytes) },
      });
      append('small-1', 100);
      try { append('large', 1_000_000); console.log('no limit'); } catch ({ code }) { console.log(code); }
      append('small-2', 100);
      journal.close();
      const names = [...Journal.open('${dir}', { boot: 'b' }).contents.collections.get('x').values()].map(({ metadata }) => metadata.name);
      console.log(names.join());`;
    const limited = ['-c', 'ulimit -f 64 && exec "$0" "$@"', process.execPath, ...script(code)];
    const { stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' });
    assert.deepEqual([stdout, stderr], ['EFBIG\nsmall-1,small-2\n', '']);
  });

  test('takes no half of a line of a log, and the lines that come when there is room again', (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'berth-log-'));
    t.onTestFinished(() => rmSync(dir, { recursive: true }));
    const code = `
      import { readFileSync } from 'node:fs';
      import { systemClock } from '${ROOT}/core/system.ts';
      import { LogFile } from '${ROOT}/local/kubelet/log-file.ts';
      const log = new LogFile('${dir}/0.log', systemClock);
      for (const line of ['one', 'x'.repeat(100_000), 'two']) log.write('stdout', Buffer.from(line + '\\n'));
      log.close();
      console.log(readFileSync(log.path, 'utf8').split('\\n').map((entry) => entry.split(' ')[3]).join());`;
    const limited = ['-c', 'ulimit -f 64 && exec "$0" "$@"', process.execPath, ...script(code)];
    const { stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' });
    assert.deepEqual([stdout, stderr], ['one,two,\n', '']);
  });
  test('takes no empty key, so that the embedded cluster starts when there is room again', (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'berth-keys-'));
    t.onTestFinished(() => rmSync(dir, { recursive: true }));
    const code = `
      import { serverKeys } from '${ROOT}/local/apiserver/auth/keys.ts';
      try { serverKeys(Date.now(), '${dir}'); console.log('keys'); } catch ({ code }) { console.log(code); }`;
    const start = (limit: string) =>
      spawnSync('sh', ['-c', `ulimit -f ${limit} && exec "$0" "$@"`, process.execPath, ...script(code)], {
        encoding: 'utf8',
      });
    // The limit does not hold for a device: the disk is full when the certificate has been written and the key has not.
    symlinkSync('/dev/null', join(dir, 'server.crt'));
    assert.equal(start('0').stdout, 'EFBIG\n');
    assert.equal(start('unlimited').stdout, 'keys\n');
    assert.match(serverKeys(Date.now(), dir).certificate, /BEGIN CERTIFICATE/);
  });
});
