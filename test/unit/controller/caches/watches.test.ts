import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Watchers } from '../../../../controller/caches/watches.ts';

test('those who watch are told in the order in which they came, of what they watch, until their signal aborts', () => {
  const told: string[] = [];
  const watchers = new Watchers();
  const [first, second] = [new AbortController(), new AbortController()];
  watchers.add({ session: (key) => told.push(`first ${key}`), pool: () => told.push('pool') }, first.signal);
  watchers.add({ session: (key) => told.push(`second ${key}`) }, second.signal);
  watchers.notify('session', 'team/a');
  watchers.notify('environment', 'team', 'tools');
  first.abort();
  watchers.notify('session', 'team/b');
  watchers.add({ session: () => told.push('after the end') }, first.signal);
  watchers.notify('session', 'team/c');
  assert.deepEqual(told, ['first team/a', 'second team/a', 'second team/b', 'second team/c']);
});
