/**
 * Set-up file of workers that run one test file after the other. A file fails whose tests change what the next file would find.
 */
import assert from 'node:assert/strict';
import { afterAll } from 'vitest';
import { changedSince, sharedState } from './left-behind.ts';

const shared = sharedState();

afterAll(() => {
  assert.deepEqual(changedSince(shared), [], 'tests put back what they change');
});
