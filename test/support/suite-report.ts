import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import type { Reporter, TestCase, TestModule, TestSpecification, TestSuite, Vitest } from 'vitest/node';

declare module 'vitest' {
  interface TaskMeta {
    /** Reason why a test or suite is skipped. */
    skipped?: string;
  }
}

/**
 * Reporter of vitest for `.ci/run` to add up: `--outputFile` gets one line of JSON after each test file, with the counts so far, and
 * a last one for the whole run. A file that does not load, a hook that fails and an error outside of tests count as failures, as
 * does each file that is not finished when the run is ended from outside. `skips` has the reasons of skipped tests and suites.
 */
export default class SuiteReport implements Reporter {
  #path: string | undefined;
  #startedAt = 0;
  #counts = { passed: 0, failed: 0, skipped: 0 };
  readonly #skips = new Set<string>();
  /** Paths of the files of the run that have not ended. */
  readonly #unfinished = new Set<string>();

  onInit(vitest: Vitest): void {
    const { outputFile } = vitest.config;
    this.#path = typeof outputFile === 'string' ? outputFile : undefined;
    this.#startedAt = performance.now();
    if (this.#path === undefined) return;
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, '');
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => this.#interrupted(signal));
  }

  onTestRunStart(files: readonly TestSpecification[]): void {
    for (const { moduleId } of files) this.#unfinished.add(moduleId);
  }

  onTestModuleEnd(file: TestModule): void {
    this.#unfinished.delete(file.moduleId);
    this.#count(file);
    this.#write();
  }

  /** Prints what a test has to say besides that it passed. */
  onTestCaseAnnotate(test: TestCase, { message }: { message: string }): void {
    console.log(`ℹ ${test.fullName}: ${message}`);
  }

  onTestRunEnd(files: readonly TestModule[], errors: readonly unknown[]): void {
    // A worker that dies leaves its file without an end, and an error that tells of it.
    this.#counts.failed += Math.max(this.#cutOff(), errors.length);
    // A run without tests proves nothing.
    if (files.length === 0 && errors.length === 0) this.#counts.failed += 1;
    this.#write();
  }

  #count(file: TestModule): void {
    for (const suite of [file, ...file.children.allSuites()]) {
      if (suite.errors().length > 0) this.#counts.failed += 1;
      if (suite.type === 'suite' && suite.options.mode === 'skip') this.#skip(suite);
    }
    for (const test of file.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') this.#counts.passed += 1;
      else if (state === 'skipped' && !isCutOff(test)) this.#skip(test);
      else this.#counts.failed += 1;
    }
  }

  #skip(task: TestCase | TestSuite): void {
    if (task.type === 'test') this.#counts.skipped += 1;
    const result = task.type === 'test' ? task.result() : undefined;
    const ofSuite = task.parent.type === 'suite' ? task.parent.meta().skipped : undefined;
    const reason = task.meta().skipped ?? (result?.state === 'skipped' ? result.note : undefined);
    // A test has the reason of its suite, which is listed once.
    if (reason !== undefined && reason !== ofSuite) this.#skips.add(`${task.fullName}: ${reason}`);
  }

  #interrupted(signal: string): void {
    console.error(`the run was ended by ${signal}`);
    this.#counts.failed += Math.max(this.#cutOff(), 1);
    this.#write();
  }

  /** Names the files that have not ended, and returns how many there are. */
  #cutOff(): number {
    for (const path of this.#unfinished) console.error(`${relative(process.cwd(), path)} did not finish`);
    return this.#unfinished.size;
  }

  #write(): void {
    if (this.#path === undefined) return;
    const seconds = Math.round((performance.now() - this.#startedAt) / 1000);
    appendFileSync(this.#path, `${JSON.stringify({ ...this.#counts, seconds, skips: [...this.#skips] })}\n`);
  }
}

/** Tells whether the test was to run and did not, because a hook of a surrounding suite failed. */
function isCutOff(test: TestCase): boolean {
  for (let around: TestSuite | TestModule = test.parent; ; around = around.parent) {
    if (around.errors().length > 0) return true;
    if (around.type === 'module') return false;
  }
}
