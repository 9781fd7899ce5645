import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';

/** Reporter of vitest that prints one line per failure, as it happens. */
export default class Failures implements Reporter {
  onTestCaseResult(test: TestCase): void {
    if (test.result().state === 'failed') console.log(`FAILED ${test.name}`);
  }

  onTestSuiteResult(suite: TestSuite): void {
    if (suite.errors().length > 0) console.log(`FAILED ${suite.name}`);
  }

  onTestModuleEnd(file: TestModule): void {
    if (file.errors().length > 0) console.log(`FAILED ${file.relativeModuleId}`);
  }
}
