import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { learningApi } from '../../../../controller/runtime/learning-api.ts';
import { StatusWriter } from '../../../../controller/runtime/status-writer.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import { pods } from '../../../../core/kube/resources.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import { sessions, turns } from '../../../../core/resources/kinds.ts';

const conflict = new ApiError({ code: 409, reason: 'Conflict', message: 'changed' });
const { signal } = new AbortController();

describe('a status', () => {
  const metadata = { namespace: 'team', name: 'a', uid: 'u', resourceVersion: '7' };

  test('is written at exactly the version that was decided upon, and nothing beside it', async () => {
    const calls: unknown[] = [];
    const api = { replace: async (...call: unknown[]) => calls.push(call) } as unknown as KubeApi;
    const writer = new StatusWriter({ api, onTurn: () => assert.fail('it is no turn') });
    await writer.write(sessions, metadata, { phase: 'Idle' } as never, signal, 50);
    const object = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', metadata, status: { phase: 'Idle' } };
    assert.deepEqual(calls, [[sessions, object, { subresource: 'status', signal, deadlineMs: 50 }]]);
  });

  test('of a turn is told before its writer goes on, where the write was answered', async () => {
    const told: string[] = [];
    let refusal: Error | undefined;
    const api = {
      replace: async (_resource: unknown, object: unknown) => {
        if (refusal) throw refusal;
        return object;
      },
    } as unknown as KubeApi;
    const writer = new StatusWriter({ api, onTurn: ({ status }) => told.push(`told ${status?.phase}`) });
    await writer.write(turns, metadata, { phase: 'Running' }, signal).then(() => told.push('goes on'));
    assert.deepEqual(told, ['told Running', 'goes on']);
    refusal = conflict;
    await assert.rejects(writer.write(turns, metadata, { phase: 'Failed' }, signal), conflict);
    assert.equal(told.length, 2);
  });
});

test('what an answer shows of an object is learned before its caller goes on, and an error and a list teach nothing', async () => {
  const steps: string[] = [];
  const object = { metadata: { name: 'p' } };
  const api = {
    get: async () => object,
    create: async () => object,
    patch: async () => object,
    replace: () => Promise.reject(conflict),
    list: async () => ({ metadata: {}, items: [object] }),
  } as unknown as KubeApi;
  const learning = learningApi(api, ({ plural }, { metadata }) => steps.push(`learn ${plural}/${metadata.name}`));
  const ref = { namespace: 'team', name: 'p' };
  for (const [what, call] of [
    ['get', () => learning.get(pods, ref)],
    ['create', () => learning.create(pods, object as never)],
    ['patch', () => learning.patch(pods, ref, {})],
    ['replace', () => learning.replace(pods, object as never).catch((error) => assert.equal(error, conflict))],
    ['list', () => learning.list(pods)],
  ] as const) {
    await call();
    steps.push(what);
  }
  assert.deepEqual(steps, [
    'learn pods/p',
    'get',
    'learn pods/p',
    'create',
    'learn pods/p',
    'patch',
    'replace',
    'list',
  ]);
});
