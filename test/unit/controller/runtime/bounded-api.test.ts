import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { boundedApi } from '../../../../controller/runtime/bounded-api.ts';
import type { KubeApi, ListOptions } from '../../../../core/kube/types.ts';
import { blobs } from '../../../../core/resources/kinds.ts';
import { NO_FAULTS } from '../../../sim/api/faults.ts';
import { QuietWorld } from '../../../support/quiet-world.ts';
import { settled } from '../../../support/virtual-clock.ts';

describe('bounded calls', () => {
  /** An API whose answers come when they are told to, by namespace. */
  function held() {
    const calls = new Map<string, PromiseWithResolvers<never>>();
    const list = (_: unknown, { namespace = '' }: ListOptions) => {
      const answer = Promise.withResolvers<never>();
      calls.set(namespace, answer);
      return answer.promise;
    };
    const api = boundedApi({ list } as unknown as KubeApi, 2);
    const asked = (namespace: string, signal?: AbortSignal) =>
      api.list(blobs, { namespace, ...(signal ? { signal } : {}) }).then(
        () => 'answered',
        (error: Error) => error.message,
      );
    return { calls, asked };
  }

  test('run a limited number at a time, in the order of their requests, whether they succeed or fail', async () => {
    const { calls, asked } = held();
    const outcomes = ['a', 'b', 'c', 'd', 'e'].map((name) => asked(name));
    await settled();
    assert.deepEqual([...calls.keys()], ['a', 'b']);
    calls.get('b')?.resolve({} as never);
    await settled();
    assert.deepEqual([...calls.keys()], ['a', 'b', 'c']);
    calls.get('a')?.reject(new Error('refused'));
    await settled();
    assert.deepEqual([...calls.keys()], ['a', 'b', 'c', 'd']);
    for (const name of ['c', 'd']) calls.get(name)?.resolve({} as never);
    await settled();
    calls.get('e')?.resolve({} as never);
    assert.deepEqual(await Promise.all(outcomes), ['refused', 'answered', 'answered', 'answered', 'answered']);
    void asked('f');
    void asked('g');
    await settled();
    assert.ok(calls.has('f') && calls.has('g'), 'every place is free again');
  });
  test('leave the queue when they are aborted, and take no slot', async () => {
    const { calls, asked } = held();
    const stop = new AbortController();
    for (const name of ['a', 'b']) void asked(name);
    const given = asked('c', stop.signal);
    void asked('d');
    stop.abort(new Error('no longer wanted'));
    assert.equal(await given, 'no longer wanted');
    assert.equal(await asked('late', stop.signal), 'no longer wanted');
    calls.get('a')?.resolve({} as never);
    await settled();
    assert.deepEqual([...calls.keys()], ['a', 'b', 'd']);
  });
});

test('sixteen calls at most are under way however many sessions store something, and all is stored', async () => {
  const world = new QuietWorld({ rates: () => ({ ...NO_FAULTS, slow: 1 }) });
  await world.start();
  const names = Array.from({ length: 40 }, (_, number) => `s-${number}`);
  const sessions = await Promise.all(names.map((name) => world.session(name)));
  const turns = await Promise.all(
    sessions.map((session) => world.turn(session, `${session.metadata.name}-1`, { ms: 10, output: 1, state: 20_000 })),
  );
  assert.deepEqual([...new Set(turns.map(({ status }) => status?.phase))], ['Succeeded']);
  assert.equal(world.mostAtOnce.get('create blobs'), 16);
});
