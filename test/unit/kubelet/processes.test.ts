import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';
import {
  findBelonging,
  identify,
  isAlive,
  killBelonging,
  type ProcessTable,
  procTable,
} from '../../../local/kubelet/processes.ts';
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

    test('never names this process or the one that started it', () => {
      const found = findBelonging(table, { leaders: [], marked: () => true });
      assert.ok(!found.includes(process.pid) && !found.includes(process.ppid));
    });
  });
}
