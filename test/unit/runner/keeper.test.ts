import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { systemClock } from '../../../core/system.ts';
import { keeperStart } from '../../../runner/process/keeper.ts';

describe('a keeper that is killed', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'berth-keeper-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  /** Starts a program under a keeper that says these lines and is killed. */
  function start(lines: string) {
    const keeper = join(directory, `keeper-${Math.random()}`);
    writeFileSync(keeper, `#!/bin/sh\n${lines}\nkill -KILL $$\n`, { mode: 0o755 });
    return keeperStart(keeper, systemClock, { required: false })({
      file: '/bin/true',
      argv0: 'true',
      args: [],
      cwd: '/',
      env: {},
    });
  }

  test('by its program before it could say that the program runs has started it', async () => {
    const { exited, gone } = await start('echo "pid $$" >&3');
    assert.deepEqual(await exited, { code: null, signal: 'SIGKILL' });
    await gone;
  });

  test('before there is a program has started none', async () => {
    await assert.rejects(start(''), { name: 'StartError', step: 'keeper', code: 'ended' });
  });

  test('after its program could not be executed has started none', async () => {
    await assert.rejects(start('echo "pid $$" >&3; echo "fail exec 2 " >&3'), { step: 'exec', code: 'ENOENT' });
  });
});
