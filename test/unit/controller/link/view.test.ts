import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { turnRefused } from '../../../../controller/link/view.ts';
import { aLink } from '../../../support/world.ts';

describe('a refused turn', () => {
  const view = aLink({ active: 't-2', sent: new Set(['t-1', 't-2']) });
  test('counts as not sent, so that it is sent again', () => {
    const after = turnRefused(view, 'Busy');
    assert.deepEqual([...after.sent], ['t-1']);
    assert.equal(after.suspended, false);
  });
  test('of a suspended runner says that the runner is suspended', () => {
    assert.equal(turnRefused(view, 'Suspended').suspended, true);
    assert.equal(turnRefused({ ...view, suspended: true }, 'Busy').suspended, true);
  });
  test('that has started all the same stays with the runner', () => {
    const started = { ...view, started: { turn: 't-2' } as NonNullable<typeof view.started> };
    assert.equal(turnRefused(started, 'Busy'), started);
  });
});
