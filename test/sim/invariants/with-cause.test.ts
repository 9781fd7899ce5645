import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import type { ControllerCall } from '../observer.ts';
import type { Facts } from './facts.ts';
import { withCause } from './with-cause.ts';

const READ = { process: 'ctl-0.1', verb: 'get', resource: 'sessions', namespace: 'team', name: 's1' };

/** What the invariant says of calls that are sent at these times, while these objects are written. */
function judged(calls: { at: number; writes?: string; call?: Partial<ControllerCall> }[]): string[] {
  const failed: string[] = [];
  const kubelets = { now: 0 };
  const present = { metadata: { name: 's1', resourceVersion: '7' }, status: { phase: 'Ready', queue: undefined } };
  const server = { get: () => present };
  const facts = { kubelets, server, fail: (name: string, why: string) => failed.push(`${name}: ${why}`) };
  const invariant = withCause(facts as unknown as Facts, { maxRunning: undefined, nodeGraceSeconds: 60 });
  for (const { at, writes, call } of calls) {
    kubelets.now = at;
    const [storage, namespace] = (writes ?? '').split('/');
    if (writes) invariant.committed?.({ storage, object: { metadata: { namespace } } } as unknown as Change);
    const whole = { ...READ, ...call } as ControllerCall;
    invariant.sent?.(whole);
    invariant.called?.(whole);
  }
  return failed;
}

const every = (ms: number, count: number) => Array.from({ length: count }, (_, i) => ({ at: i * ms }));

describe('what is asked for again and again', () => {
  test('has no cause where nothing is written', () => {
    assert.deepEqual(judged(every(100, 21)), [
      'with cause: ctl-0.1 asks 21 times in 2.0 s to get sessions s1 in namespace "team", where nothing changes',
    ]);
  });
  test('may be asked for now and then, or after each write in its namespace', () => {
    assert.deepEqual(judged(every(600, 200)), []);
    assert.deepEqual(judged(every(100, 200).map((one) => ({ ...one, writes: 'turns.berth.dev/team' }))), []);
    assert.deepEqual(judged(every(100, 200).map((one) => ({ ...one, writes: 'nodes' }))), []);
  });
  test('may be a read before each of several writes that are refused, but not before the same write', () => {
    const pairs = (name: (i: number) => string) =>
      every(100, 30).flatMap(({ at }, i) => [{ at }, { at, call: { verb: 'patch', name: name(i) } as const }]);
    assert.deepEqual(judged(pairs((i) => `t${i}`)), []);
    assert.match(judged(pairs(() => 't1'))[0] ?? '', /21 times in 2.0 s to patch sessions t1/);
  });
  test('may be a pod before and after its log is opened, but not more often', () => {
    const reads = (count: number) => every(100, count).map((one) => ({ ...one, call: { resource: 'pods' } }));
    assert.deepEqual(judged(reads(40)), []);
    assert.match(judged(reads(41))[0] ?? '', /41 times in 4.0 s to get pods s1/);
  });
  test('has no cause in a write of another namespace, nor in the lease or an event', () => {
    for (const writes of ['turns.berth.dev/other', 'leases.coordination.k8s.io/team', 'events/team'])
      assert.equal(judged(every(100, 21).map((one) => ({ ...one, writes }))).length, 1, writes);
  });
});

describe('a status', () => {
  const write = (version: string, status: object) => {
    const object = { metadata: { name: 's1', resourceVersion: version }, status };
    return judged([{ at: 1, call: { verb: 'replace', object } as never }]);
  };
  test('is not written as it is', () => {
    assert.deepEqual(write('7', { phase: 'Ready' }), ['with cause: ctl-0.1 writes the status of sessions s1 as it is']);
  });
  test('may be written where it differs, and where the writer cannot know what it is', () => {
    assert.deepEqual(write('7', { phase: 'Running' }), []);
    assert.deepEqual(write('6', { phase: 'Ready' }), []);
  });
});
