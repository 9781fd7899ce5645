import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Cli } from '../../../../cli/cli.ts';
import { serverBackend } from '../../../../cli/server/backend.ts';
import type { ServerClient, ServerRequest } from '../../../../cli/server/client.ts';
import { ServerError } from '../../../../cli/server/errors.ts';
import type { ServerObjects } from '../../../../cli/server/objects.ts';

const metadata = { name: 'notes', namespace: 'default', uid: 'one' };
const signal = new AbortController().signal;

/** A backend whose server refuses requests for this reason where they name a UID, and the requests that it took. */
function backendOf(refusal: { code: string; field: string }) {
  const taken: string[] = [];
  const client = {
    async json(method: string, path: string, { query }: ServerRequest) {
      const details = { causes: [{ field: refusal.field, message: 'there is no such field' }] };
      if (query?.uid !== undefined)
        throw new ServerError({ code: 400, reason: refusal.code, message: 'refused', details });
      taken.push(`${method} ${path}`);
      return {};
    },
  } as unknown as ServerClient;
  let now: object | undefined = { metadata };
  const objects = { object: () => ({}), get: async () => now } as unknown as ServerObjects;
  const backend = serverBackend(client, objects, { namespace: 'default' } as never, {} as Cli);
  return { backend, taken, become: (uid: string) => (now = { metadata: { ...metadata, uid } }) };
}

test('a server that does not know the precondition yet is asked by the name, and a session is compared before it is deleted', async () => {
  const { backend, taken, become } = backendOf({ code: 'InvalidParameter', field: 'uid' });
  const session = { metadata } as never;
  await backend.suspend(session, false, signal);
  await backend.resume(session, signal);
  await backend.deleteSession(session, {});
  become('another');
  await assert.rejects(backend.deleteSession(session, {}), /another has its name; that one is kept/);
  const path = '/v1/namespaces/default/sessions/notes';
  assert.deepEqual(taken, [`POST ${path}/suspend`, `POST ${path}/resume`, `DELETE ${path}`]);
});

test('any other refusal of the server is the answer', async () => {
  for (const [code, field, reason] of [
    ['UIDMismatch', 'uid', 'NotFound'],
    ['InvalidParameter', 'session', 'InvalidParameter'],
  ] as const) {
    const { backend, taken } = backendOf({ code, field });
    await assert.rejects(backend.suspend({ metadata } as never, false, signal), { reason });
    assert.deepEqual(taken, []);
  }
});
