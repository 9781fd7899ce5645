import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** All files in one worker, and modules loaded by Node itself: `plant.ts` gives it the mutant. */
export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  test: {
    pool: 'forks',
    isolate: false,
    maxWorkers: 1,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    execArgv: ['--import', './test/mutation/plant.ts'],
    setupFiles: ['test/support/worker.ts'],
    include: ['test/unit/**/*.test.ts'],
    reporters: ['./test/mutation/reporter.ts'],
    bail: 1,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
