import { defineConfig } from 'vitest/config';

/**
 * One project for each of `make unit`, `make sim`, … The limits of time are for a test or hook that hangs; the Makefile ends a suite
 * that takes too long as a whole.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    setupFiles: ['test/support/worker.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
