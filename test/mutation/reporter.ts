import type { TestEvent } from 'node:test/reporters';

/** Reporter for `node --test` that prints one line per failed test, as it fails. */
export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of source) if (event.type === 'test:fail') yield `FAILED ${event.data.name}\n`;
}
