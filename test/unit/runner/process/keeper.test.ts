import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { systemClock } from '../../../../core/system.ts';
import { keeperStart } from '../../../../runner/process/keeper.ts';
import { skipIf, skipWithout } from '../../../support/requires.ts';

const KEEPER = fileURLToPath(new URL('../../../../build/keeper', import.meta.url));
const LAST_PID = '/proc/sys/kernel/ns_last_pid';

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

describe('a keeper', () => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-keeper-'));
  afterAll(() => rmSync(directory, { recursive: true }));

  test('lists a survivor that has the pid of the program that ended', async () => {
    const keeper = join(directory, 'keeper');
    const say = (...lines: string[]) => lines.map((line) => `echo "${line}" >&3\n`).join('');
    const begun = say('pid 4711', 'start', 'exit 0 0 0');
    const answer = `head -c1 <&3 >/dev/null\n${say('left 4711 sleep', 'listed 0 0', 'empty')}`;
    writeFileSync(keeper, `#!/bin/sh\n${begun}${answer}`, { mode: 0o755 });
    const start = keeperStart(keeper, systemClock, { required: false });
    const family = await start({ file: '/bin/true', argv0: 'true', args: [], cwd: '/', env: {} });
    assert.deepEqual(await family.survivors(), [{ pid: 4711, command: 'sleep' }]);
  });

  const noReuse = skipWithout('keeper', existsSync(KEEPER), 'build it with make keeper') || cannotChoosePids();
  test('reports one end, whatever processes get the pid of its program later', skipIf(noReuse), async () => {
    // A session or process group of its own: the kernel gives no pid again that is in use as the number of one.
    const script = `agent=$1
while kill -0 $agent 2>/dev/null; do :; done
while :; do
  echo $((agent - 1)) >/proc/sys/kernel/ns_last_pid
  sh -c 'exit 9' &
  [ $! = $agent ] && exit
  wait
done`;
    writeFileSync(join(directory, 'reuse'), script);
    const child = spawn(KEEPER, ['-', '/bin/sh', 'sh', '-c', 'setsid sh ./reuse $$ & exit 7'], {
      cwd: directory,
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    });
    const control = child.stdio[3] as Duplex;
    let said = '';
    for await (const text of control.setEncoding('utf8')) {
      said += text;
      if (said.includes('empty\n')) control.end();
    }
    assert.deepEqual(said.match(/^(exit|signal) .*$/gm), ['exit 7 0 0'], said);
  });
});

/** Tells why a test cannot have the kernel give a pid again; false where it can. */
function cannotChoosePids(): string | false {
  try {
    writeFileSync(LAST_PID, String(process.pid));
    return false;
  } catch (error) {
    return `${LAST_PID} cannot be written: ${(error as Error).message}`;
  }
}
