import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { describe, test } from 'vitest';
import { procTable } from '../../../local/kubelet/proc.ts';
import type { ProcessTable } from '../../../local/kubelet/process-table.ts';
import { findBelonging, identify, isAlive, killBelonging } from '../../../local/kubelet/processes.ts';
import { psTable } from '../../../local/kubelet/ps.ts';
import { eventually } from '../../support/eventually.ts';

function hasPs(): boolean {
  try {
    execFileSync('ps', ['-p', '1'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const tables: [string, ProcessTable][] = [];
if (existsSync('/proc/self/stat')) tables.push(['/proc', procTable]);
if (hasPs()) tables.push(['ps', psTable]);

/** A shell that leads a session, with a child in it. */
async function family(mark: string, script = 'sleep 1000 & echo; wait'): Promise<ChildProcess> {
  const child = spawn('/bin/sh', ['-c', script], {
    detached: true,
    env: { PATH: process.env.PATH, TEST_MARK: mark },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(child.stdout!, 'data');
  return child;
}

for (const [name, table] of tables) {
  describe(`the process table by way of ${name}`, () => {
    const nobody = () => false;

    test('identifies a process, and a pid with another start is not it', async () => {
      const child = await family('identity');
      const identity = identify(table, child.pid!)!;
      assert.equal(isAlive(table, identity), true);
      assert.equal(isAlive(table, { ...identity, start: identity.start - 1_000 }), false);
      assert.equal(isAlive(table, { ...identity, bootId: 'another' }), false);
      await killBelonging(table, { leaders: [identity], marked: nobody });
      await eventually(() => !isAlive(table, identity));
      assert.equal(identify(table, child.pid!), undefined);
    });

    test('finds the members of a session whose leader is gone', async () => {
      const child = await family('session', 'sleep 1000 & echo');
      const leader = identify(table, child.pid!) ?? { pid: child.pid!, start: 0, bootId: table.bootId() };
      await eventually(() => !isAlive(table, leader));
      assert.equal(findBelonging(table, { leaders: [leader], marked: nobody }).length, 1);
      assert.deepEqual(await killBelonging(table, { leaders: [leader], marked: nobody }), []);
    });

    test('finds by a mark in the environment, descendants without it included', async () => {
      const mark = `mark-${name.length}-${process.pid}`;
      await family(mark, 'setsid env -i sh -c "sleep 1000; :" & echo; wait');
      const marked = (environment: Map<string, string>) => environment.get('TEST_MARK') === mark;
      // The shell; what setsid became; its sleep.
      await eventually(() => findBelonging(table, { leaders: [], marked }).length === 3);
      assert.deepEqual(await killBelonging(table, { leaders: [], marked }), []);
    });

    // Elsewhere than on Linux such a process is no zombie.
    if (table !== psTable)
      test('finds a process whose main thread has ended', async (t) => {
        const thread = 'threads->create(sub { sleep 1000 }); syscall((uname)[4] eq "x86_64" ? 60 : 93, 0)';
        const mark = `threads-${process.pid}`;
        const child = await family(mark, `echo; exec perl -Mthreads -MPOSIX=uname -e '${thread}'`);
        t.onTestFinished(() => void child.kill('SIGKILL'));
        await eventually(() => readFileSync(`/proc/${child.pid}/stat`, 'latin1').includes(') Z '));
        const marked = (environment: Map<string, string>) => environment.get('TEST_MARK') === mark;
        assert.deepEqual(findBelonging(table, { leaders: [], marked }), [child.pid]);
        assert.deepEqual(await killBelonging(table, { leaders: [], marked }), []);
      });

    test('is read again after a pause of this process, however long: processes that came meanwhile are ended, too', async (t) => {
      const mark = `pause-${name.length}-${process.pid}`;
      const [early, late] = [await family(mark, 'echo; exec sleep 1000'), await family(mark, 'echo; exec sleep 1000')];
      t.onTestFinished(() => {
        for (const child of [early, late]) child.kill('SIGKILL');
      });
      let looks = 0;
      const paused: ProcessTable = {
        bootId: () => table.bootId(),
        find: (pid) => table.find(pid),
        environment: (pid) => table.environment(pid),
        isLoading: () => table.isLoading(),
        list: () => {
          looks += 1;
          if (looks > 1) return table.list();
          const soon = table.list().filter(({ pid }) => pid !== late.pid);
          // Longer than anything is waited for.
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_100);
          return soon;
        },
      };
      const marked = (environment: Map<string, string>) => environment.get('TEST_MARK') === mark;
      assert.deepEqual(await killBelonging(paused, { leaders: [], marked }, 2_000), []);
      await eventually(() => early.signalCode === 'SIGKILL' && late.signalCode === 'SIGKILL');
    });

    test('never names this process or the one that started it', () => {
      const found = findBelonging(table, { leaders: [], marked: () => true });
      assert.ok(!found.includes(process.pid) && !found.includes(process.ppid));
    });
  });
}
