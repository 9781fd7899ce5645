import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import { namespaces } from '../../../core/kube/resources.ts';
import { type StoredSession, sessionclasses, sessions } from '../../../core/resources/kinds.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import { storageOf } from '../api/server.ts';
import type { ControllerCall } from '../observer.ts';
import { type Facts, LEASES } from './facts.ts';
import { inTurn } from './queue.ts';

/** A session `namespace/name` that waits since this second. */
const waits = (key: string, ofClass: string, second: number, status: object = {}) => {
  const [namespace, name] = key.split('/');
  const queue = { since: `2030-01-01T00:00:0${second}Z`, reason: 'AtCapacity' };
  return {
    metadata: { namespace, name, uid: key, resourceVersion: '1' },
    spec: { class: ofClass },
    status: { queue, ...status },
  } as StoredSession;
};

const aClass = (name: string, limits: object) => ({ metadata: { name }, spec: { limits } });

/** Installation with `maxRunning` slots, of which class `narrow` may take one. */
class World {
  readonly failures: string[] = [];
  readonly #sessions: StoredSession[];
  readonly #invariant: ReturnType<typeof inTurn>;

  constructor(maxRunning: number, ...waiting: StoredSession[]) {
    this.#sessions = waiting;
    const lists = new Map<object, object[]>([
      [sessions, waiting],
      [sessionclasses, [aClass('narrow', { maxRunning: 1 }), aClass('wide', {})]],
      [namespaces, ['b', 'c', 'd'].map((name) => ({ metadata: { name } }))],
    ]);
    const facts = {
      kubelets: { now: 0 },
      server: {
        list: (kind: object) => lists.get(kind) ?? [],
        get: (_kind: object, namespace: string, name: string) => this.#find(`${namespace}/${name}`),
      },
      callBehind: () => ({ process: 'ctl' }),
      knewUntil: () => 0,
      fail: (invariant: string, message: string) => this.failures.push(`${invariant}: ${message}`),
    };
    this.#invariant = inTurn(facts as unknown as Facts, { maxRunning, nodeGraceSeconds: 60 });
    for (const storage of [storageOf(sessionclasses), LEASES]) {
      const object = { metadata: {}, spec: { leaseTransitions: 1 } };
      this.#invariant.committed?.({ storage, object } as unknown as Change);
    }
  }

  #find(key: string): StoredSession | undefined {
    return this.#sessions.find(({ metadata }) => metadata.uid === key);
  }

  /** The leader asks for a slot for the session, and is told that it has none where it is refused. */
  gives(key: string, refusal?: Error): this {
    const [namespace = '', name = ''] = key.split('/');
    const object = {
      ...this.#find(key),
      metadata: { name, namespace, resourceVersion: '1' },
      status: { podName: `pod-${name}` },
    };
    const call = { process: 'ctl', verb: 'replace', resource: 'sessions', namespace, name, object, knew: () => 1 };
    this.#invariant.sent?.(call as unknown as ControllerCall);
    if (refusal) this.#invariant.answered?.(call as unknown as ControllerCall, refusal);
    return this;
  }
}

/** Namespace b was never served, c was. */
const failures = (maxRunning: number, ...others: StoredSession[]): string[] => {
  const [later, served, given] = [
    waits('b/later', 'narrow', 5),
    waits('c/served', 'wide', 1),
    waits('c/given', 'narrow', 2),
  ];
  return new World(maxRunning, later, served, given, ...others).gives('c/served').gives('c/given').failures;
};
const PASSED = 'in turn: ctl gives c/given the last place that b/later could have, which comes first';

describe('the last slot that a waiting session could have, given to a namespace that comes later', () => {
  test('is a violation', () => {
    assert.deepEqual(failures(3), [PASSED]);
  });

  test('is none while an earlier session of the passed namespace has yet to take another slot', () => {
    const first = waits('b/first', 'wide', 4);
    assert.deepEqual(failures(3, first), []);
    const metadata = { ...first.metadata, creationTimestamp: '2030-01-01T00:00:04Z' };
    assert.deepEqual(failures(3, { ...first, metadata, status: {} }), []);
  });

  test('is one where that session has no slot left, comes later or waits for none', () => {
    const queue = { since: '2030-01-01T00:00:04Z', reason: 'GroupLimit' };
    const others = [
      waits('b/first', 'narrow', 4),
      waits('b/last', 'wide', 6),
      waits('d/first', 'wide', 4),
      waits('b/first', 'wide', 4, { podName: 'pod' }),
      waits('b/first', 'wide', 4, { queue }),
      waits('b/first', 'wide', 4, { queue: undefined, incarnation: 1 }),
    ];
    for (const other of others) assert.ok(failures(3, other).includes(PASSED), JSON.stringify(other));
    assert.ok(failures(2, waits('b/first', 'wide', 4)).includes(PASSED));
  });

  test('is none where the API server refused what the other namespace was given before, unless the answer was lost', () => {
    const [later, served, given] = [
      waits('b/later', 'narrow', 5),
      waits('c/served', 'wide', 1),
      waits('c/given', 'narrow', 2),
    ];
    const after = (refusal: Error) =>
      new World(3, later, served, given).gives('c/served', refusal).gives('c/given').failures;
    assert.deepEqual(after(new ApiError({ code: 404, reason: 'NotFound', message: 'not found' })), []);
    assert.deepEqual(after(new TransportError('socket hang up')), [PASSED]);
  });

  test('is none where the leader tried to give one to a session of the passed namespace that is gone', () => {
    const [later, served, given] = [
      waits('b/later', 'narrow', 5),
      waits('c/served', 'wide', 1),
      waits('c/given', 'narrow', 2),
    ];
    const world = () => new World(3, later, served, given).gives('c/served');
    assert.deepEqual(world().gives('b/gone').gives('c/given').failures, []);
    assert.deepEqual(world().gives('c/given').failures, [PASSED]);
  });
});
