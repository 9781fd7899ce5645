import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { KernelLock } from '../../../local/kernel-lock.ts';

const HOME = join(import.meta.dirname, '..', '..', '..', 'local', 'home.ts');

/** A process that locks the home, says so, and then does nothing until it is killed. */
function locker(home: string): { child: ChildProcess; said: () => string } {
  const code = `
    import { Home } from '${HOME}';
    const home = new Home(process.argv[1]);
    await Promise.try(() => home.lock()).then(() => console.log('locked'), (error) => console.log(error.code));
    setInterval(() => {}, 1000);`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', code, home];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  return { child, said: () => text.trim() };
}

async function untilSaid({ child, said }: ReturnType<typeof locker>): Promise<string> {
  if (!said()) await once(child.stdout!, 'data');
  return said();
}

test('the file of the lock is its user’s alone, also where an earlier release has made it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-lock-'));
  const path = join(folder, 'guard.sqlite');
  for (const mode of [undefined, 0o644]) {
    if (mode !== undefined) chmodSync(path, mode);
    const lock = KernelLock.take(path);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(KernelLock.take(path), undefined, 'the lock is held');
    lock?.release();
  }
  rmSync(folder, { recursive: true });
});

describe('the lock of the folder', { timeout: 60_000 }, () => {
  test('is not given to another while its holder lives, whatever its file says, and is free when the holder is killed', async (t) => {
    const home = mkdtempSync(join(tmpdir(), 'berth-home-'));
    const started: ChildProcess[] = [];
    t.onTestFinished(() => {
      for (const child of started) child.kill('SIGKILL');
      rmSync(home, { recursive: true, force: true });
    });
    const start = () => {
      const made = locker(home);
      started.push(made.child);
      return made;
    };
    const first = start();
    assert.equal(await untilSaid(first), 'locked');
    const second = start();
    assert.equal(await untilSaid(second), 'AlreadyRunning');

    // The moment between judging the file of a dead holder and writing one's own.
    const file = join(home, 'lock');
    const identity = JSON.parse(readFileSync(file, 'utf8'));
    for (const change of [() => rmSync(file), () => writeFileSync(file, JSON.stringify({ ...identity, start: 1 }))]) {
      change();
      const other = start();
      const soon = new Promise((resolve) => setTimeout(resolve, 1_500, 'nothing'));
      assert.equal(await Promise.race([untilSaid(other), soon]), 'nothing');
      other.child.kill('SIGKILL');
    }

    const next = start();
    first.child.kill('SIGKILL');
    assert.equal(await untilSaid(next), 'locked');
    assert.equal(JSON.parse(readFileSync(file, 'utf8')).pid, next.child.pid);
  });
});
