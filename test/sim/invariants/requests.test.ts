import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { Requests } from './requests.ts';

const session = (suspendHandled: object, podName?: string) =>
  ({ metadata: { uid: 's' }, status: { suspendHandled, podName } }) as unknown as StoredSession;
const turn = (index?: number) => ({ status: { index } }) as unknown as StoredTurn;
const done = { id: 'r', afterTurn: 2, done: true };

describe('requests to suspend that were carried out', () => {
  test('one is not while the session has its pod, whatever is claimed', () => {
    const requests = new Requests();
    requests.session(session({ ...done, done: undefined }));
    requests.session(session(done, 'pod'));
    assert.equal(requests.of('s', 'r'), undefined);
    requests.session(session(done));
    assert.equal(requests.of('s', 'r')?.later, false);
    assert.equal(requests.of('s', 'another'), undefined);
  });

  test('a later turn wakes the session, and so does one without an index', () => {
    for (const index of [3, undefined]) {
      const requests = new Requests();
      requests.session(session(done));
      requests.turn(turn(index), 's');
      requests.session(session(done));
      assert.equal(requests.of('s', 'r')?.later, true);
    }
  });

  test('a turn that was there does not, nor one that was gone before', () => {
    const requests = new Requests();
    requests.turn(turn(3), 's');
    requests.session(session(done));
    requests.turn(turn(2), 's');
    assert.equal(requests.of('s', 'r')?.later, false);
  });
});
