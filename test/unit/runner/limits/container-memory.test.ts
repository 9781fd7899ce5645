import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { systemClock } from '../../../../core/system.ts';
import { ContainerMemory } from '../../../../runner/limits/container-memory.ts';
import { Meter } from '../../../../runner/limits/meter.ts';
import { keeperStart } from '../../../../runner/process/keeper.ts';
import { eventually } from '../../../support/eventually.ts';
import { skipIf, skipWithout } from '../../../support/requires.ts';

const KEEPER = join(import.meta.dirname, '../../../../build/keeper');
const MiB = 2 ** 20;
const LIMIT = 128 * MiB;
/** Path of this kernel's memory controller: of version 1, or of version 2 as far as it is delegated. */
const V1 = '/sys/fs/cgroup/memory';
const V2 = '/sys/fs/cgroup';

interface Place {
  parent: string;
  limit: string;
  usage: string;
  /** The key in memory.stat of what the kernel can take back. */
  reclaimable: string;
}

function places(): Place | undefined {
  if (existsSync(V1)) {
    const files = { limit: 'memory.limit_in_bytes', usage: 'memory.usage_in_bytes' };
    return { parent: V1, ...files, reclaimable: 'total_inactive_file' };
  }
  const handedDown = join(V2, 'cgroup.subtree_control');
  const has = existsSync(handedDown) && readFileSync(handedDown, 'utf8').includes('memory');
  const files = { limit: 'memory.max', usage: 'memory.current' };
  return has ? { parent: V2, ...files, reclaimable: 'inactive_file' } : undefined;
}

const place = process.getuid?.() === 0 ? places() : undefined;

describe(
  'a real container’s memory',
  skipIf(skipWithout('memory-cgroup', place !== undefined, 'needs root and a memory controller')),
  () => {
    const { parent = '', limit = '', usage = '', reclaimable = '' } = place ?? {};
    let group: string;
    /** Files of the control group as a container sees them. */
    let root: string;
    beforeAll(() => {
      // Python's own pages are charged to this process, which reads them first, and are not the group's to take back.
      execFileSync('python3', ['-c', 'import time']);
      group = mkdtempSync(join(parent, 'berth-test-'));
      writeFileSync(join(group, limit), String(LIMIT));
      // A machine may have room on its disk for what does not fit.
      for (const [file, most] of [
        ['memory.swap.max', 0],
        ['memory.memsw.limit_in_bytes', LIMIT],
      ] as const) {
        if (existsSync(join(group, file))) writeFileSync(join(group, file), String(most));
      }
      root = mkdtempSync(join(tmpdir(), 'berth-cgroup-'));
      symlinkSync(group, join(root, 'memory'));
    });
    afterAll(async () => {
      rmSync(root, { recursive: true });
      await eventually(() => removed(group), { what: 'the cgroup is empty' });
    });

    const find = () => ContainerMemory.find(parent === V1 ? root : group);

    /**
     * A program of the container that takes memory until so much is used, `step` bytes at a time, and stays there. What the
     * kernel can take back is not counted, and how much that is it may tell seconds later.
     */
    async function taker(most: number, { clock = systemClock, step = MiB } = {}) {
      const memory = find();
      assert.ok(memory);
      const limits = { required: false };
      const start = new Meter({ limits, memory, together: true, clock }).wrap(keeperStart(KEEPER, systemClock, limits));
      const grow = `
import time
def used():
    stat = dict(line.split() for line in open('${join(group, 'memory.stat')}'))
    return int(open('${join(group, usage)}').read()) - int(stat['${reclaimable}'])
taken = []
while True:
    if used() >= ${most}:
        time.sleep(0.01)
        continue
    taken.append(bytearray(b'1') * ${step})`;
      const args = ['-c', `echo $$ > ${group}/cgroup.procs; exec python3 -c "${grow}"`];
      const env = { PATH: process.env.PATH ?? '' };
      const family = await start({ file: '/bin/bash', argv0: 'bash', args, cwd: '/', env });
      for (const stream of [family.stdout, family.stderr]) stream.resume();
      return { family, memory };
    }

    test('is read as the kernel counts it', async () => {
      const { family, memory } = await taker(64 * MiB);
      const now = await eventually(() => {
        const read = memory.read();
        return read && read.bytes > 60 * MiB ? read : undefined;
      });
      assert.ok(now.limit === LIMIT && now.bytes < LIMIT, JSON.stringify(now));
      family.kill();
      await family.gone;
      assert.equal(family.overrun, undefined);
    });

    test('near its limit is a turn’s MemoryLimit, and the kernel has killed nobody', async () => {
      const { family, memory } = await taker(LIMIT - 5 * MiB);
      const kills = memory.oomKills();
      assert.equal((await family.exited).signal, 'SIGKILL');
      assert.equal(family.overrun?.code, 'MemoryLimit');
      assert.equal(memory.oomKills(), kills);
      await family.gone;
    });

    test('taken between two measurements is an OOMKilled by the kernel, and is reported as that', async () => {
      // In one step: a program that reads its own pages from the disk again while it takes more, and so frees what it has just
      // read, can keep the kernel from its decision for minutes.
      const clock = { ...systemClock, setTimer: () => () => {} };
      const { family, memory } = await taker(2 * LIMIT, { clock, step: 2 * LIMIT });
      assert.equal((await family.exited).signal, 'SIGKILL');
      assert.equal(family.overrun?.code, 'OOMKilled');
      assert.match(family.overrun?.message ?? '', new RegExp(`${LIMIT} bytes`));
      assert.ok((memory.oomKills() ?? 0) > 0);
      await family.gone;
    });
  },
);

/** The kernel removes a group when the last of its dead has gone. */
function removed(group: string): boolean {
  try {
    rmdirSync(group);
    return true;
  } catch {
    return !existsSync(group);
  }
}
