import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { systemClock } from '../../../../core/system.ts';
import { ContainerMemory } from '../../../../runner/limits/container-memory.ts';
import { Meter } from '../../../../runner/limits/meter.ts';
import { overrunOfPod } from '../../../../runner/limits/pod-memory.ts';
import { keeperLimits } from '../../../../runner/limits/rlimits.ts';
import type { Contained } from '../../../../runner/process/contained.ts';
import { keeperStart } from '../../../../runner/process/keeper.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const KEEPER = fileURLToPath(new URL('../../../../build/keeper', import.meta.url));
const MiB = 2 ** 20;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth-cgroup-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A container's memory files as the kernel writes them: Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst. */
const VERSIONS = {
  v1: (numbers: { used: number; limit: number; reclaimable: number; kills: number }) => {
    mkdirSync(join(root, 'memory'), { recursive: true });
    const write = (file: string, text: string) => writeFileSync(join(root, 'memory', file), text);
    write('memory.usage_in_bytes', `${numbers.used}\n`);
    write('memory.limit_in_bytes', `${numbers.limit === Infinity ? '9223372036854771712' : numbers.limit}\n`);
    write('memory.stat', `cache 1\ninactive_file 7\ntotal_inactive_file ${numbers.reclaimable}\n`);
    write('memory.oom_control', `oom_kill_disable 0\nunder_oom 0\noom_kill ${numbers.kills}\n`);
  },
  v2: (numbers: { used: number; limit: number; reclaimable: number; kills: number }) => {
    const write = (file: string, text: string) => writeFileSync(join(root, file), text);
    write('memory.current', `${numbers.used}\n`);
    write('memory.max', `${numbers.limit === Infinity ? 'max' : numbers.limit}\n`);
    write('memory.stat', `anon 1\nfile 2\ninactive_file ${numbers.reclaimable}\n`);
    write(
      'memory.events',
      `low 0\nhigh 0\nmax 3\noom 1\noom_kill ${numbers.kills}\noom_group_kill 0\nsock_throttled 0\n`,
    );
  },
};

const FILES = {
  v1: { usage: 'memory/memory.usage_in_bytes', stat: 'memory/memory.stat', events: 'memory/memory.oom_control' },
  v2: { usage: 'memory.current', stat: 'memory.stat', events: 'memory.events' },
};

const CALM = { used: 100 * MiB, limit: 1024 * MiB, reclaimable: 0, kills: 0 };

test('the keeper is told every number, the rlimits with their headroom', () => {
  assert.equal(keeperLimits({ required: false }, false), '-');
  assert.equal(keeperLimits({ required: false }, true), 'contained=1');
  assert.equal(
    keeperLimits(
      {
        required: true,
        memoryBytes: 1000,
        cpuSeconds: 3,
        fileSizeBytes: 4,
        processes: 5,
        openFiles: 6,
        coreBytes: 0,
      },
      false,
    ),
    'memory=1000,data=1073742824,cpu=3,fsize=4,processes=5,nproc=16389,nofile=6,core=0',
  );
});

test('usage of a process is known when it has ended, also while others of its family still run', async () => {
  const { start } = metered();
  const family = await start('sleep 600 & exit 3');
  await family.exited;
  assert.ok((family.usage?.cpuUs ?? 0) > 0 && family.usage?.processes === 1, JSON.stringify(family.usage));
  family.kill();
  await family.gone;
});

test('a family that has told what it uses with the news of its start, and nothing since, is over the session’s limit', async () => {
  const meter = new Meter({ limits: { required: true, processes: 10 }, together: true, clock: systemClock });
  let kills = 0;
  const family = {
    usage: { cpuUs: 1, memoryBytes: 1, peakBytes: 1, processes: 11, mostProcesses: 11 },
    ...{ overrun: undefined, onUsage: () => {}, kill: () => kills++ },
    ...{ exited: new Promise(() => {}), gone: new Promise(() => {}) },
  } as unknown as Contained;
  await meter.wrap(async () => family)({ file: '', argv0: '', args: [], cwd: '', env: {} });
  assert.deepEqual([family.overrun?.code, kills], ['TooManyProcesses', 1]);
});

test('the memory of a pod is watched on after readings that failed', async () => {
  const clock = new VirtualClock();
  const readings = [{ bytes: 1, limit: 100 }, undefined, undefined, { bytes: 99, limit: 100 }];
  const memory = { read: () => readings.shift() };
  const meter = new Meter({ limits: { required: true }, memory, together: true, clock });
  let kills = 0;
  const family = {
    usage: { cpuUs: 1, memoryBytes: 1, peakBytes: 1, processes: 1, mostProcesses: 1 },
    ...{ overrun: undefined, onUsage: () => {}, kill: () => kills++ },
    ...{ exited: new Promise(() => {}), gone: new Promise(() => {}) },
  } as unknown as Contained;
  await meter.wrap(async () => family)({ file: '', argv0: '', args: [], cwd: '', env: {} });
  await clock.advance(1_000);
  assert.deepEqual([family.overrun?.code, kills], ['MemoryLimit', 1]);
});

test('near the memory limit of the pod commands end before the turn’s processes, the largest first', async () => {
  const clock = new VirtualClock();
  const memory = { read: () => ({ bytes: 99, limit: 100 }) };
  const meter = new Meter({ limits: { required: true }, memory, together: true, clock });
  const ended: string[] = [];
  const start = (name: string, memoryBytes: number, kind: 'turn' | 'command') => {
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    const kill = () => {
      ended.push(name);
      resolve();
    };
    const usage = { cpuUs: 5_000_000, memoryBytes, peakBytes: memoryBytes, processes: 1, mostProcesses: 1 };
    const family = { usage, kill, gone, exited: new Promise(() => {}), onUsage: () => {} } as unknown as Contained;
    return meter.wrap(async () => family, kind)({ file: '', argv0: '', args: [], cwd: '', env: {} });
  };
  meter.begin();
  await start('turn', 50, 'turn');
  await start('small', 10, 'command');
  await start('large', 20, 'command');
  assert.deepEqual(meter.read(), { cpuSeconds: 5, peakMemoryBytes: 50, processes: 1 }, 'usage of the turn alone');
  await clock.advance(1_000);
  assert.deepEqual(ended, ['large', 'small', 'turn']);
});

test('a pod is over its limit shortly before a kernel would kill', () => {
  assert.equal(overrunOfPod({ bytes: 959 * MiB, limit: 1024 * MiB }), undefined);
  const over = overrunOfPod({ bytes: 961 * MiB, limit: 1024 * MiB });
  assert.equal(over?.code, 'MemoryLimit');
  assert.match(over?.message ?? '', /1007681536 of the 1073741824 bytes .*resources\.limits\.memory/);
  assert.equal(overrunOfPod({ bytes: 59 * MiB, limit: 64 * MiB }), undefined, 'a small one has less to spare');
  assert.equal(overrunOfPod({ bytes: 61 * MiB, limit: 64 * MiB })?.code, 'MemoryLimit');
});

for (const [version, write] of Object.entries(VERSIONS)) {
  describe(`the container’s memory by cgroup ${version}`, () => {
    test('is what it uses without what the kernel can take back', () => {
      write({ ...CALM, used: 500 * MiB, reclaimable: 200 * MiB });
      assert.deepEqual(ContainerMemory.find(root)?.read(), { bytes: 300 * MiB, limit: 1024 * MiB });
    });

    test('is not watched without a limit', () => {
      write({ ...CALM, limit: Infinity });
      assert.equal(ContainerMemory.find(root), undefined);
    });

    test('is watched without the files of what can be taken back and of kills: all counts, and no kill is told', () => {
      write({ ...CALM, used: 500 * MiB, reclaimable: 200 * MiB });
      const { stat, events } = FILES[version as keyof typeof FILES];
      for (const file of [stat, events]) rmSync(join(root, file));
      const memory = ContainerMemory.find(root);
      assert.deepEqual(memory?.read(), { bytes: 500 * MiB, limit: 1024 * MiB });
      assert.deepEqual([memory.oomKills(), memory.killedSince(memory.oomKills())], [undefined, undefined]);
    });

    test('is not watched where what it uses cannot be read', () => {
      write(CALM);
      rmSync(join(root, FILES[version as keyof typeof FILES].usage));
      assert.equal(ContainerMemory.find(root), undefined);
    });

    test('near its limit ends the largest family and no other', async () => {
      write(CALM);
      const { start } = metered();
      const small = await start('sleep 600');
      const large = await start('x=$(head -c 30000000 /dev/zero | tr "\\0" x); while :; do sleep 0.05; done');
      await untilUsage(large, (bytes) => bytes > 20 * MiB);
      write({ ...CALM, used: 1020 * MiB });
      assert.equal((await large.exited).signal, 'SIGKILL');
      assert.equal(large.overrun?.code, 'MemoryLimit');
      write(CALM);
      assert.equal(small.overrun, undefined);
      small.kill();
      await small.gone;
    });

    test('a process that the kernel killed for want of memory is OOMKilled, by signal and by a shell’s exit code', async () => {
      for (const script of ['kill -KILL $$', 'exit 137']) {
        write(CALM);
        const { start } = metered();
        const family = await start(`read line; ${script}`);
        write({ ...CALM, kills: 1 });
        family.stdin.end('\n');
        await family.exited;
        assert.equal(family.overrun?.code, 'OOMKilled', script);
        assert.match(family.overrun?.message ?? '', /its limit of 1073741824 bytes/);
      }
    });

    test('a process that somebody else killed, or that ended by itself, is not', async () => {
      write({ ...CALM, kills: 3 });
      const { start } = metered();
      const killed = await start('kill -KILL $$');
      await killed.exited;
      assert.equal(killed.overrun, undefined, 'the kernel killed before, not since');
      const failed = await start('read line; exit 1');
      write({ ...CALM, kills: 4 });
      failed.stdin.end('\n');
      await failed.exited;
      assert.equal(failed.overrun, undefined);
    });
  });
}

test('a kernel of cgroup v1 that counts no kills, before Linux 4.13, tells none', () => {
  VERSIONS.v1(CALM);
  writeFileSync(join(root, 'memory/memory.oom_control'), 'oom_kill_disable 0\nunder_oom 0\n');
  const memory = ContainerMemory.find(root);
  assert.deepEqual([memory?.oomKills(), memory?.killedSince(undefined)], [undefined, undefined]);
});

function metered() {
  const limits = { required: false };
  const memory = ContainerMemory.find(root);
  const meter = new Meter({ limits, memory, together: true, clock: systemClock });
  const start = meter.wrap(keeperStart(KEEPER, systemClock, limits));
  return {
    meter,
    start: async (script: string) => {
      const env = { PATH: process.env.PATH ?? '' };
      const family = await start({ file: '/bin/bash', argv0: 'bash', args: ['-c', script], cwd: root, env });
      for (const stream of [family.stdout, family.stderr]) stream.resume();
      return family;
    },
  };
}

type Family = Awaited<ReturnType<ReturnType<typeof metered>['start']>>;

async function untilUsage(family: Family, enough: (bytes: number) => boolean): Promise<void> {
  while (!enough(family.usage?.memoryBytes ?? 0)) await family.survivors();
}
