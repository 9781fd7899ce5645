import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { StoredSession } from '../../../core/resources/kinds.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import type { ControllerCall } from '../observer.ts';
import { type Facts, SESSIONS } from './facts.ts';
import { Waiting } from './waiting.ts';

const session = {
  metadata: { namespace: 'a', name: 's', uid: 'u' },
  spec: {},
  status: { queue: { since: '2030-01-01T00:00:00Z' } },
} as StoredSession;

/** A session waits since version 1. Version n of any session is written at 100 n ms. */
class World {
  readonly kubelets = { now: 100 };
  readonly waiting = new Waiting({
    kubelets: this.kubelets,
    callBehind: () => undefined,
    sessionCameAt: (version: number) => 100 * version,
  } as unknown as Facts);

  constructor() {
    this.waiting.committed({ storage: SESSIONS, type: 'MODIFIED', object: session, version: 1 } as unknown as Change);
  }

  /** A process calls for the session at `sentAt`, and is answered at `at`. */
  calls(sentAt: number, at: number, error?: Error): this {
    const call = { process: 'p', resource: 'sessions', namespace: 'a', name: 's', sentAt: () => sentAt };
    this.waiting.sent(call as unknown as ControllerCall);
    this.kubelets.now = at;
    this.waiting.answered(call as unknown as ControllerCall, error);
    return this;
  }

  hasWaitedSince(version: number, process = 'p'): boolean {
    return this.waiting.hasWaitedSince({ process } as ControllerCall, session, version);
  }
}

const failure = new Error('failed');

describe('time that a session has certainly been in the queue', () => {
  test('a session waits since its own status says so', () => {
    const world = new World();
    assert.deepEqual([world.hasWaitedSince(1), world.hasWaitedSince(2)], [false, true]);
  });

  test('a session that failed is back once a call succeeds', () => {
    const world = new World().calls(210, 220, failure).calls(330, 340);
    assert.deepEqual([world.hasWaitedSince(3), world.hasWaitedSince(4)], [false, true]);
  });

  test('a session that failed is back after the last of its reads', () => {
    const world = new World().calls(210, 220, failure).calls(330, 340).calls(340, 440);
    assert.deepEqual([world.hasWaitedSince(4), world.hasWaitedSince(5)], [false, true]);
  });

  test('later calls, and failures of another process, take nothing away', () => {
    const world = new World().calls(210, 220, failure).calls(330, 340).calls(500, 600);
    assert.equal(world.hasWaitedSince(4), true);
    assert.equal(world.hasWaitedSince(3, 'q'), true);
  });
});
