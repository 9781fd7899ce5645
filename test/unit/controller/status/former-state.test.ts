import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { aSession, aWorld, SESSION_UID } from '../../../support/world.ts';

const OTHER = '11111111-1111-4111-8111-111111111111';
const CREATED = Date.parse(aSession().metadata.creationTimestamp);
const at = (ms: number) => new Date(CREATED + ms).toISOString();
const state = { digest: 'd'.repeat(64), keyId: 'k', bytes: 10, incarnation: 1, seq: 2 };

/** Conditions of a suspended session with this state, after a reconcile. */
function conditions(more: object, lastActiveAt: string) {
  const before = {
    type: 'Suspended',
    status: 'True',
    reason: 'Suspended',
    message: 'as it was backed up',
    lastTransitionTime: at(0),
  } as const;
  const status = {
    incarnation: 1,
    phase: 'Suspended',
    state: { ...state, ...more },
    lastActiveAt,
    conditions: [before],
  };
  const { status: next } = decide(aWorld({ session: aSession({ status: status as never }) }));
  const of = (type: string) => next.conditions?.find((condition) => condition.type === type);
  return { stored: of('StatePersisted'), suspended: of('Suspended') };
}

describe('a session that was restored from a backup under another uid', () => {
  test.for([
    ['its content in the store names the former uid', { ref: `${OTHER}/1/2` }, 1_000],
    ['it was active before it was created', { inline: 'AAAA' }, -600_000],
  ] as const)('says that its state cannot be opened: %s', ([, more, activeMs]) => {
    const { stored, suspended } = conditions(more, at(activeMs));
    assert.deepEqual([stored?.status, stored?.reason], ['False', 'StateUnavailable']);
    assert.match(stored?.message ?? '', /of a session with another uid.*Restore etcd as a whole/);
    assert.equal(suspended?.status, 'True');
    assert.match(suspended?.message ?? '', /no key of this session opens it/);
    assert.doesNotMatch(suspended?.message ?? '', /next turn wakes it/);
  });

  test.for([
    ['of its own uid', { ref: `${SESSION_UID}/1/2` }, 1_000],
    ['in the status, with clocks that differ a little', { inline: 'AAAA' }, -60_000],
  ] as const)('is not what a session is whose state is %s', ([, more, activeMs]) => {
    const { stored, suspended } = conditions(more, at(activeMs));
    assert.deepEqual([stored?.status, stored?.reason], ['True', 'StateStored']);
    assert.equal(suspended?.message, 'as it was backed up');
  });
});
