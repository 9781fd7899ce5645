import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'vitest';

const module = (path: string) => JSON.stringify(new URL(`../../../${path}`, import.meta.url).href);

describe('a runner that can open no more files', () => {
  for (const start of ['keeperStart(process.execPath, clock, {})', 'groupStart(clock, {})']) {
    test(`fails the start and goes on: ${start}`, () => {
      const script = `
import { openSync, writeSync } from 'node:fs';
import { systemClock } from ${module('core/system.ts')};
import { keeperStart } from ${module('runner/process/keeper.ts')};
import { groupStart } from ${module('runner/process/group.ts')};
const clock = systemClock;
try {
  for (;;) openSync('/dev/null');
} catch {}
const spec = { file: process.execPath, argv0: 'node', args: ['--version'], cwd: '/', env: {} };
const failure = await ${start}(spec).catch((error) => error);
await new Promise((resolve) => setImmediate(resolve));
writeSync(1, String(failure));
process.exit(0);`;
      const args = ['-c', 'ulimit -n 128; exec "$0" "$@"', process.execPath, '--input-type=module', '-e', script];
      const { stdout, stderr, status } = spawnSync('sh', args, { encoding: 'utf8' });
      assert.deepEqual([status, stdout], [0, 'StartError: spawn failed: EMFILE'], stderr);
    });
  }
});
