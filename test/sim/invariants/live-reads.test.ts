import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { StoredSession } from '../../../core/resources/kinds.ts';
import type { ControllerCall } from '../observer.ts';
import type { Facts } from './facts.ts';
import { LiveReads, ofSuspension } from './live-reads.ts';

test('a list in pages is no read of a suspension', () => {
  const store = { version: 7 };
  const facts = { server: { store, get: () => undefined }, kubelets: { now: 0 } } as unknown as Facts;
  const [all, own] = [new LiveReads(facts), new LiveReads(facts, ofSuspension)];
  const session = { metadata: { namespace: 'team', name: 's' } } as StoredSession;
  const list = { verb: 'list', resource: 'turns', namespace: 'team', process: 'a', fieldSelector: 'spec.session=s' };
  const read = (limit?: number) => {
    for (const reads of [all, own]) reads.called({ ...list, limit } as ControllerCall);
  };
  read();
  store.version = 9;
  read(500);
  assert.deepEqual([all.of('a', session)?.version, own.of('a', session)?.version], [9, 7]);
});
