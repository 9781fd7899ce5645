import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Problem } from '../../../../api/problems/problems.ts';
import type { Call, Services } from '../../../../api/route.ts';
import { turnRoutes } from '../../../../api/routes/turns.ts';
import { ApiError } from '../../../../core/kube/errors.ts';

/** Cancels a turn in whose place another has come between the look at it and the patch. */
async function cancelled(refusal: ApiError): Promise<unknown> {
  const uids = ['first', 'second'];
  const turn = () => ({ metadata: { name: 'notes-1', uid: uids.shift() }, spec: { session: 'notes' }, status: {} });
  const api = { get: async () => turn(), patch: async () => Promise.reject(refusal) };
  const params = { namespace: 'default', session: 'notes', turn: 'notes-1' };
  const call = { params, query: {}, signal: new AbortController().signal } as unknown as Call;
  const route = turnRoutes.find(({ operationId }) => operationId === 'cancelTurn');
  return route?.handle(call, { api } as unknown as Services).catch((error: unknown) => error);
}

test('a turn that has come in the place of the one that was seen is not cancelled, and told by its UID', async () => {
  const causes = [{ field: 'metadata.uid', message: 'field is immutable' }];
  for (const refusal of [
    new ApiError({ code: 409, reason: 'Conflict', message: 'Precondition failed' }),
    new ApiError({ code: 422, reason: 'Invalid', message: 'metadata.uid: field is immutable', details: { causes } }),
  ]) {
    const error = await cancelled(refusal);
    assert.ok(error instanceof Problem);
    assert.equal(error.code, 'UIDMismatch');
    assert.match(error.message, /^Turn "notes-1" has the UID second, not first: .*Nothing was changed\.$/);
  }
});

test('any other refusal of the patch is the answer', async () => {
  const refusal = new ApiError({ code: 422, reason: 'Invalid', message: 'spec.cancel: invalid' });
  assert.equal(await cancelled(refusal), refusal);
});
