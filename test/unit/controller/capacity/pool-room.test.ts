import assert from 'node:assert/strict';
import { test } from 'vitest';
import { anApplicant } from '../../../support/applicant.ts';
import { setUp } from './support.ts';

test('a pool gives way to sessions that could use its slots, and to no others', () => {
  const { caches, ledger } = setUp({ max: 100 });
  const free = () => ledger.room({ namespace: 'team', class: 'default' }).free;
  caches.setClass('paused', { limits: { maxRunning: 0 } });
  ledger.wait({ ...anApplicant('other/paused'), class: 'paused' });
  assert.equal(free(), true, 'a limit of its class holds it back');
  caches.unread.set('lost', 'gone');
  ledger.wait(anApplicant('lost/unread'));
  assert.equal(free(), true, 'its namespace cannot be read');
  caches.setClass('small', { limits: { maxRunning: 1 } });
  ledger.wait({ ...anApplicant('other/small'), class: 'small' });
  assert.equal(free(), false);
});
