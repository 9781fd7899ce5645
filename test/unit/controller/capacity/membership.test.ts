import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { membershipOf } from '../../../../controller/capacity/membership.ts';
import type { CachedSession, CachedTurn } from '../../../../controller/observed/world.ts';
import type { TurnStatus } from '../../../../core/resources/turn.ts';
import { aSession, aTurn } from '../../../support/world.ts';

const session = (name?: string, status: object = {}) =>
  aSession({
    ...(name ? { spec: { concurrencyGroup: { name, limit: 2 } } } : {}),
    status: { phase: 'Ready', ...status } as never,
  }) as CachedSession;
const turn = (name: string, status: TurnStatus) => aTurn({ name, status: { index: 1, ...status } });
const part = (of: CachedSession | undefined, ...turns: CachedTurn[]) =>
  membershipOf('team/s', of, { turnsNaming: () => turns });

describe('a session that has a running turn', () => {
  const began = turn('t', { phase: 'Running', concurrencyGroup: 'a' });
  test('counts it in the group that the turn names, whatever the session names since', () => {
    const others = [{ group: 'team/a', running: ['t'] }];
    assert.deepEqual(part(session('a'), began), { group: 'team/a', limit: 2, running: ['t'] });
    assert.deepEqual(part(session('b'), began), { group: 'team/b', limit: 2, running: [], others });
    assert.deepEqual(part(session(), began), { group: undefined, running: [], others });
    assert.deepEqual(part(undefined, began), { group: undefined, running: [], others });
  });
  test('counts it where it waits for a decision, and where its pod has not started', () => {
    for (const status of [{ phase: 'AwaitingApproval' }, { phase: 'Queued', podUID: 'p' }] as const)
      assert.deepEqual(part(session('b'), turn('t', { ...status, concurrencyGroup: 'a' }))?.others?.[0]?.running, [
        't',
      ]);
    for (const status of [{ phase: 'Queued' }, { phase: 'Succeeded', concurrencyGroup: 'a' }] as const)
      assert.deepEqual(part(session('b'), turn('t', status)), { group: 'team/b', limit: 2, running: [] });
  });
  test('counts one that names no group, as an earlier version began it, in its own', () => {
    const old = turn('t', { phase: 'Running' });
    assert.deepEqual(part(session('b'), old), { group: 'team/b', limit: 2, running: ['t'] });
    assert.equal(part(session(), old), undefined);
    assert.equal(part(undefined, old), undefined);
  });
  test('asks for no limit once it is finished', () => {
    assert.deepEqual(part(session('a', { phase: 'Finished' }), began), { group: 'team/a', running: ['t'] });
  });
});

test('sessions of several classes that name one group share it, with what they run and what began before', () => {
  const began = turn('t', { phase: 'Running', concurrencyGroup: 'a' });
  const early = turn('e', { phase: 'Running' });
  const groupsOf = (ofClass: string) => {
    const of = session('a');
    const member = part({ ...of, spec: { ...of.spec, class: ofClass } }, began, early);
    return [member?.group, member?.running, member?.others];
  };
  for (const ofClass of ['default', 'any-image', 'another'])
    assert.deepEqual(groupsOf(ofClass), ['team/a', ['t', 'e'], undefined]);
});
