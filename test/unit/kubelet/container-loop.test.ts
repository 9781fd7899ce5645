import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, test } from 'vitest';
import { systemClock as clock } from '../../../core/system.ts';
import { ContainerLoop } from '../../../local/kubelet/container-loop.ts';
import { PipeFactory } from '../../../local/kubelet/pipes.ts';
import { type ProcessIdentity, processTable } from '../../../local/kubelet/processes.ts';
import { exists } from '../../support/processes.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-loop-'));
// Pipes may still be made there for a next container.
afterAll(() => rmSync(folder, { recursive: true, maxRetries: 10 }));

/** A container that runs `script` once, with `record` called at its start and once its process is known. */
function container(script: string, record: (process: ProcessIdentity | undefined) => void): ContainerLoop {
  const root = join(folder, 'root');
  return new ContainerLoop(
    {
      container: { table: processTable, pipes: new PipeFactory(join(folder, 'pipes')), clock },
      clock,
      images: { image: { entrypoint: [] } },
      restartPolicy: 'Never',
      prepare: async () => ({
        argv: ['/bin/sh', '-c', script],
        workingDir: folder,
        env: { BERTH_LOCAL_ROOT: root, BERTH_CONTAINER: 'main' },
      }),
      logPath: () => join(folder, 'main.log'),
      record: (_name, _restartCount, process) => record(process),
      changed() {},
      event() {},
    },
    { name: 'main', image: 'image' },
  );
}

test('a process that was started and cannot be recorded is ended', async () => {
  let pid = 0;
  const loop = container('trap "" TERM; sleep 1000', (process) => {
    if (!process) return;
    pid = process.pid;
    throw new Error('no space left on device');
  });
  await loop.run(new AbortController().signal);
  const { terminated } = loop.view.state;
  assert.deepEqual([terminated?.reason, terminated?.message], ['ContainerCannotRun', 'no space left on device']);
  assert.ok(pid > 0 && !exists(pid));
});

test('a process that has ended counts as ended also while that cannot be recorded', async () => {
  let records = 0;
  const loop = container('exit 3', () => {
    records += 1;
    if (records === 3) throw new Error('no space left on device');
  });
  await loop.run(new AbortController().signal);
  assert.deepEqual([loop.view.state.terminated?.exitCode, records], [3, 3]);
});
