import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const MINUTE_MS = 60_000;

/** Runs the files of a suite by name: two runs of the same commit run them in the same order. */
class ByName extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
  }
}

/**
 * Returns a project, one for each of `make unit`, `make sim`, … The timeouts are for a test or hook that hangs; the Makefile ends a
 * suite that takes too long as a whole.
 */
const project = (name: string, include: string, maxWorkers: number, limitMs: number, maxConcurrency = 5) => ({
  extends: true as const,
  test: { name, include: [include], maxWorkers, maxConcurrency, testTimeout: limitMs, hookTimeout: limitMs },
});

export default defineConfig({
  test: {
    pool: 'forks',
    setupFiles: ['test/support/worker.ts'],
    sequence: { sequencer: ByName },
    coverage: {
      provider: 'v8',
      include: ['{api,cli,controller,core,local,runner}/**/*.ts'],
      reporter: ['text', 'html'],
      reportsDirectory: 'build/coverage',
    },
    projects: [
      project('unit', 'test/unit/**/*.test.ts', 2, 2 * MINUTE_MS),
      // The seeds of a test run on all cores; planted bugs are looked for two at a time.
      project('sim', 'test/sim/**/*.test.ts', 1, 15 * MINUTE_MS, 2),
      project('integration', 'test/integration/**/*.test.ts', 2, 10 * MINUTE_MS),
      project('e2e', 'test/e2e/*.test.ts', 1, 20 * MINUTE_MS),
      project('agents', 'test/agents/*.test.ts', 1, 15 * MINUTE_MS),
    ],
  },
});
