import { relative } from 'node:path';
import type { Reporter, TestModule, TestRunEndReason, Vitest } from 'vitest/node';
import { type FileTimes, keepTimes, lastTimes } from './report.ts';
import { conclusions } from './table.ts';

/**
 * Reporter of vitest that keeps what each test file took for `make times` and for the order of the next run. At the end it prints
 * what was slowest and what has become slower since the last report on this machine. `TIMES` names the suite; without it, nothing is
 * kept. `ONLY` tells that the run is not of the whole suite.
 */
export default class TimesReporter implements Reporter {
  readonly #suite = process.env.TIMES;
  readonly #files: Record<string, FileTimes> = {};
  #workers = 1;
  #startedAt = 0;

  onInit(vitest: Vitest): void {
    this.#startedAt = performance.now();
    this.#workers = Math.max(...vitest.projects.map(({ config }) => Number(config.maxWorkers) || 1));
  }

  onTestModuleEnd(module: TestModule): void {
    // A file that failed says nothing about how long it takes.
    if (module.state() !== 'passed') return;
    const { duration, collectDuration, setupDuration, prepareDuration } = module.diagnostic();
    const tests = [...module.children.allTests()].map((test) => ({
      name: test.fullName,
      ms: Math.round(test.diagnostic()?.duration ?? 0),
    }));
    this.#files[relative(process.cwd(), module.moduleId)] = {
      tests: tests.length,
      wallMs: Math.round(duration + collectDuration + setupDuration + prepareDuration),
      ...(module.meta().times ?? { cpuMs: 0, waits: [] }),
      slowest: tests.sort((a, b) => b.ms - a.ms)[0],
    };
  }

  onTestRunEnd(_modules: readonly TestModule[], _errors: readonly unknown[], reason: TestRunEndReason): void {
    if (this.#suite === undefined || Object.keys(this.#files).length === 0) return;
    const before = lastTimes(this.#suite);
    for (const line of conclusions(this.#files, before.files)) console.log(line);
    const whole = !process.env.ONLY && reason === 'passed';
    keepTimes(this.#suite, {
      ...before,
      ...(whole && { wallMs: Math.round(performance.now() - this.#startedAt), workers: this.#workers }),
      // A whole run forgets the files that are no more.
      files: whole ? this.#files : { ...before.files, ...this.#files },
    });
  }
}
