import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import type { StateRef } from '../../../core/resources/schema.ts';
import type { ControllerCall } from '../observer.ts';
import { UncopiedStates } from './states.ts';

const state: StateRef = { digest: 'd', keyId: 'k', bytes: 1, incarnation: 1, seq: 7 };
const turn = { metadata: { uid: 't' } } as StoredTurn;

/** A call of a process that has been shown the turns as of a version. */
const call = (process: string, version = 0) => ({ process, knew: () => version }) as unknown as ControllerCall;

/** A state that `writer` has committed in version 10; its turn is deleted in version 20. */
function deleted(tell: (states: UncopiedStates, commit: ControllerCall) => void): UncopiedStates {
  const states = new UncopiedStates();
  const commit = call('writer');
  states.leads('writer');
  states.committed(turn, 's', { state, version: 10, call: commit });
  tell(states, commit);
  states.deleted(turn, 20);
  return states;
}

test('a state is not lost while its turn is there, whoever leads', () => {
  const states = new UncopiedStates();
  states.leads('other');
  states.committed(turn, 's', { state, version: 10, call: call('writer') });
  assert.deepEqual(states.of('s'), [state]);
  assert.deepEqual(states.of('another'), []);
});

test('a state whose turn is deleted is lost with a leader that was not told of it, and only then', () => {
  assert.deepEqual(deleted(() => {}).of('s'), []);
  const told = deleted((states, commit) => states.answered(commit));
  assert.deepEqual(told.of('s'), [state]);
  told.leads('successor');
  assert.deepEqual(told.of('s'), []);
});

test('a leader is told by its caches, before they show the deletion', () => {
  for (const [version, kept] of [
    [9, []],
    [10, [state]],
    [19, [state]],
    [20, []],
  ] as const) {
    const states = deleted(() => {});
    states.leads('successor');
    states.writes(call('successor', version), 's');
    assert.deepEqual(states.of('s'), kept, `version ${version}`);
  }
});

test('a state is no longer the turn’s alone when the session’s status has it or a later one', () => {
  const states = new UncopiedStates();
  const session = (seq: number) =>
    ({ metadata: { uid: 's' }, status: { state: { ...state, seq } } }) as unknown as StoredSession;
  states.committed(turn, 's', { state, version: 10, call: undefined });
  states.copied(session(6));
  assert.deepEqual(states.of('s'), [state]);
  states.copied(session(7));
  assert.deepEqual(states.of('s'), []);
});
