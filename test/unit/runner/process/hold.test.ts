import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { systemClock } from '../../../../core/system.ts';
import type { Contained } from '../../../../runner/process/contained.ts';
import { keeperStart } from '../../../../runner/process/keeper.ts';
import { eventually } from '../../../support/eventually.ts';
import { skipIf, skipWithout } from '../../../support/requires.ts';

const KEEPER = fileURLToPath(new URL('../../../../build/keeper', import.meta.url));
const noKeeper = skipWithout('keeper', existsSync(KEEPER), 'there is no build/keeper: run make keeper');
const noPython = skipWithout('python', hasPython(), 'there is no python3');

function hasPython(): boolean {
  try {
    execFileSync('python3', ['-c', 'import sqlite3']);
    return true;
  } catch {
    return false;
  }
}

describe('a family that is held', skipIf(noKeeper), () => {
  let root: string;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'berth-hold-'));
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  /** Starts a program that leaves a file `ready` in its directory. */
  async function start(command: string[]): Promise<{ family: Contained; cwd: string } & AsyncDisposable> {
    const cwd = mkdtempSync(join(root, 'f-'));
    const [file = '', ...args] = command;
    const run = keeperStart(KEEPER, systemClock, { required: false });
    const env = { PATH: process.env.PATH ?? '' };
    const family = await run({ file, argv0: file, args, cwd, env });
    await eventually(() => existsSync(join(cwd, 'ready')), { what: 'the program' });
    const end = async () => {
      family.kill();
      await family.gone;
    };
    return { family, cwd, [Symbol.asyncDispose]: end };
  }
  const sh = (script: string) => start(['/bin/sh', '-c', script]);

  /** States of all threads of the family. */
  async function states(family: Contained): Promise<string[]> {
    const pids = [family.pid, ...(await family.survivors()).map(({ pid }) => pid)];
    return pids.flatMap((pid) =>
      readdirSync(`/proc/${pid}/task`).map((task) => {
        const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1');
        return stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '';
      }),
    );
  }

  test('writes nothing, however deep, detached and busy its processes are, and goes on afterwards', async () => {
    const writer = 'while :; do i=$((i + 1)); echo $i >n.tmp; mv n.tmp n; done';
    await using running = await sh(
      `(setsid sh -c '(cd . && ${writer}) & wait' &) ; until [ -f n ]; do :; done; >ready; wait; exec tail -f /dev/null`,
    );
    const { family, cwd } = running;
    const read = () => [readFileSync(join(cwd, 'n'), 'utf8'), statSync(join(cwd, 'n')).ino, readdirSync(cwd).join()];
    for (let i = 0; i < 20; i++) {
      assert.deepEqual(await family.hold(), { named: [], count: 0 });
      const seen = read();
      for (const state of await states(family)) assert.match(state, /[TZ]/);
      assert.deepEqual(read(), seen);
      family.release();
      await eventually(() => read()[0] !== seen[0], { what: 'a write after the release' });
    }
  });

  test('stands with all threads of all of its processes', skipIf(noPython), async () => {
    const program = `
import threading, time, subprocess
def work():
    while True: subprocess.run(["/bin/true"])
for _ in range(8): threading.Thread(target=work).start()
open("ready", "w")
`;
    await using running = await start(['/usr/bin/env', 'python3', '-c', program]);
    for (let i = 0; i < 10; i++) {
      assert.deepEqual(await running.family.hold(), { named: [], count: 0 });
      const threads = await states(running.family);
      assert.ok(threads.length >= 9, `${threads}`);
      for (const state of threads) assert.match(state, /[TZ]/);
      running.family.release();
    }
  });

  test('leaves those stopped that somebody else had stopped', async () => {
    await using running = await sh(
      'sleep 1000 & p=$!; until grep -q sleep /proc/$p/comm; do :; done; kill -STOP $p; sleep 1001 & >ready; wait',
    );
    const { family } = running;
    const stateOf = async (seconds: string) => {
      const pid = (await family.survivors()).find(({ command }) => command.endsWith(seconds))?.pid;
      return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0];
    };
    await eventually(async () => (await stateOf('1000')) === 'T', { what: 'the stop' });
    await family.hold();
    assert.equal(await stateOf('1001'), 'T');
    family.release();
    await eventually(async () => (await stateOf('1001')) === 'S', { what: 'the release' });
    assert.equal(await stateOf('1000'), 'T');
  });

  test('tells no parent that its child stood', async () => {
    // A shell with job control waits for stopped children, too, and prints their state.
    await using running = await sh('exec 2>&1; set -m; >ready; while :; do sleep 0.01; done >log');
    for (let i = 0; i < 20; i++) {
      await running.family.hold();
      running.family.release();
    }
    running.family.terminate();
    await running.family.exited;
    assert.equal(readFileSync(join(running.cwd, 'log'), 'utf8'), '');
  });

  test('that is told to end is told when it is released', async () => {
    await using running = await sh('trap "echo ended >end; exit" TERM; >ready; while :; do sleep 0.01; done');
    const { family, cwd } = running;
    await family.hold();
    family.terminate();
    for (const state of await states(family)) assert.match(state, /[TZ]/);
    assert.ok(!existsSync(join(cwd, 'end')));
    family.release();
    await family.gone;
    assert.ok(existsSync(join(cwd, 'end')));
  });

  test('can be killed', async () => {
    await using running = await sh('sleep 1000 & >ready; wait');
    await running.family.hold();
    running.family.kill();
    await running.family.gone;
  });

  test('and has gone is held at once', async () => {
    await using running = await sh('>ready');
    await running.family.gone;
    assert.deepEqual(await running.family.hold(), { named: [], count: 0 });
    running.family.release();
  });

  test('by a keeper that is killed meanwhile has gone', async () => {
    await using running = await sh('sleep 1000 & >ready; wait');
    const { family } = running;
    const keeper = Number(readFileSync(`/proc/${family.pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[1]);
    process.kill(keeper, 'SIGSTOP'); // It cannot answer before it is killed.
    const held = family.hold();
    process.kill(keeper, 'SIGKILL');
    assert.deepEqual(await held, { named: [], count: 0 });
    await family.gone;
  });

  test('within what can be stopped in time names what goes on', skipIf(noPython), async () => {
    // A parent in vfork stands only when its child has run a program, and this child opens a pipe before, which nobody else opens.
    const program = `
import os
os.mkfifo("pipe")
open("ready", "w")
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "pipe", os.O_RDONLY, 0)])
`;
    await using running = await start(['/usr/bin/env', 'python3', '-c', program]);
    const { family } = running;
    await eventually(async () => (await states(family)).includes('D'), { what: 'the wait for the child' });
    const { named, count } = await family.hold();
    assert.equal(count, 1);
    assert.equal(named[0]?.pid, family.pid);
    assert.match(named[0]?.command ?? '', /python3/);
    family.release();
  });
});
