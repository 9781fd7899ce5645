import type { TestEvent } from 'node:test/reporters';

/** A reporter for `node --test`: one line of JSON with what the whole run counted, for `.ci/run` to add up. */
export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of source) {
    // A summary with a file is that file's alone; the last one, without, is the run's.
    if (event.type !== 'test:summary' || event.data.file !== undefined) continue;
    const { tests, passed, skipped, todo } = event.data.counts;
    const failed = tests - passed - skipped - todo;
    const seconds = Math.round(event.data.duration_ms / 1000);
    yield `${JSON.stringify({ passed, failed, skipped: skipped + todo, seconds })}\n`;
  }
}
