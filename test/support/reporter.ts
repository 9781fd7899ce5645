import type { TestEvent } from 'node:test/reporters';

/**
 * A reporter for `node --test`, whose output `.ci/run` adds up. After each file it writes one line of JSON with the
 * counts so far, and at the end one for the whole run, which includes files that failed before their first test. If the
 * run is ended from outside, the last such line remains. `skips` lists the skipped tests with their reasons. A skipped
 * suite counts as one test: Node does not count it, and does not know its tests.
 */
export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const sum = { tests: 0, passed: 0, skipped: 0, todo: 0 };
  const skips: string[] = [];
  let suites = 0;
  let seconds = 0;
  for await (const event of source) {
    if (event.type === 'test:pass' && event.data.skip !== undefined) {
      skips.push(`${event.data.name}: ${event.data.skip}`);
      if (event.data.details.type === 'suite') suites++;
    }
    if (event.type !== 'test:summary') continue;
    const whole = event.data.file === undefined;
    for (const name of ['tests', 'passed', 'skipped', 'todo'] as const) {
      sum[name] = (whole ? 0 : sum[name]) + event.data.counts[name];
    }
    seconds = (whole ? 0 : seconds) + event.data.duration_ms / 1000;
    const { tests, passed, skipped, todo } = sum;
    const failed = tests - passed - skipped - todo;
    const leftOut = skipped + suites + todo;
    yield `${JSON.stringify({ passed, failed, skipped: leftOut, seconds: Math.round(seconds), skips })}\n`;
  }
}
