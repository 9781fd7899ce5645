import { relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { lastTimes, longestFirst } from './test/times/report.ts';

const MINUTE_MS = 60_000;

/** Starts the files that took longest in the last run on this machine first; TIMES names the suite. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { TIMES } = process.env;
    const times = TIMES === undefined ? { files: {} } : lastTimes(TIMES);
    return longestFirst(files, ({ moduleId }) => relative(import.meta.dirname, moduleId), times);
  }
}

interface Settings {
  maxWorkers: number;
  /** Tests of a file that run side by side where the file allows it. */
  maxConcurrency?: number;
  isolate?: false;
  setupFiles?: string[];
  globalSetup?: string;
  sequence?: { groupOrder: number };
}

/**
 * Returns a project, one for each of `make unit`, `make sim`, … The timeouts are for a test or hook that hangs; the Makefile ends a
 * suite that takes too long as a whole.
 */
const project = (name: string, include: string, limitMs: number, settings: Settings) => ({
  extends: true as const,
  test: { name, include: [include], testTimeout: limitMs, hookTimeout: limitMs, ...settings },
});

export default defineConfig({
  test: {
    pool: 'forks',
    setupFiles: ['test/support/worker.ts'],
    // Node imports the modules itself, as it does in the programs.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongestFirst },
    coverage: {
      provider: 'v8',
      include: ['{api,cli,clients,controller,core,local,runner}/**/*.ts'],
      reporter: ['text', 'html'],
      reportsDirectory: 'build/coverage',
    },
    projects: [
      // Without isolation a worker imports a module once, for all of its files.
      project('unit', 'test/unit/**/*.test.ts', 2 * MINUTE_MS, {
        maxWorkers: 3,
        isolate: false,
        setupFiles: ['test/support/shared-worker.ts'],
      }),
      // The seeds of a test run on all cores; planted bugs are looked for two at a time.
      project('sim', 'test/sim/**/*.test.ts', 15 * MINUTE_MS, { maxWorkers: 1, maxConcurrency: 2 }),
      // Twice as many as the cores that CI has: these tests wait for half of their time. Two tests of a file, as each may have a cluster.
      project('integration', 'test/integration/**/*.test.ts', 10 * MINUTE_MS, {
        maxWorkers: 4,
        maxConcurrency: 2,
        globalSetup: 'test/support/compiled.ts',
      }),
      // Files that leave the installation as it is, then those that change it or the cluster, or count what is everybody's.
      project('e2e-beside', 'test/e2e/beside/*.test.ts', 20 * MINUTE_MS, {
        maxWorkers: 2,
        sequence: { groupOrder: 1 },
      }),
      project('e2e-alone', 'test/e2e/alone/*.test.ts', 20 * MINUTE_MS, { maxWorkers: 1, sequence: { groupOrder: 2 } }),
      project('agents', 'test/agents/*.test.ts', 15 * MINUTE_MS, { maxWorkers: 1 }),
    ],
  },
});
