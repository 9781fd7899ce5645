import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decisionOn, isSettled } from '../../../../api/requests/decisions.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import type { StoredApproval, StoredTurn } from '../../../../core/resources/kinds.ts';

const { signal } = new AbortController();
const approval = { id: 'r', prompt: '?', since: '', process: 'Ended', incarnation: 1, seq: 1, ranMs: 1 } as const;
const turnWith = (status: object) =>
  ({ metadata: { namespace: 'ns', name: 'a-1', uid: 'u' }, spec: {}, status }) as unknown as StoredTurn;
const asks = turnWith({ phase: 'AwaitingApproval', approval });
const made = (name: string, second: number, more: object = {}, spec: object = {}) =>
  ({
    metadata: { name, creationTimestamp: new Date(second * 1000).toISOString(), generation: 1, ...more },
    spec: { turn: 'a-1', requestId: 'r', decision: 'Approve', ...spec },
  }) as unknown as StoredApproval;
const ownedBy = (uid: string) => ({ ownerReferences: [{ kind: 'Turn', uid }] });
const apiWith = (...items: StoredApproval[]) => ({ list: async () => ({ items }) }) as unknown as Pick<KubeApi, 'list'>;

describe('the decision on a request', () => {
  const first = async (turn: StoredTurn, ...items: StoredApproval[]) =>
    (await decisionOn(apiWith(...items), turn, 'r', signal))?.object?.metadata.name;

  test('is the oldest that names it and is for this turn', async () => {
    assert.equal(await first(asks), undefined);
    assert.equal(await first(asks, made('late', 2, ownedBy('u')), made('by-hand', 1)), 'by-hand');
    assert.equal(await first(asks, made('b', 1), made('a', 1)), 'a');
    const none = [
      made('of-an-earlier-turn', 1, ownedBy('other')),
      made('changed', 1, { generation: 2 }),
      made('goes', 1, { deletionTimestamp: 'now' }),
      made('of-another-request', 1, {}, { requestId: 'q' }),
    ];
    for (const approval of none) assert.equal(await first(asks, approval), undefined, approval.metadata.name);
  });

  test('is known from the turn where its Approval was deleted', async () => {
    const decided = { decision: 'Deny', by: 'jane', approval: 'x', at: 't' } as const;
    const turn = turnWith({ phase: 'Running', approval: { ...approval, decided } });
    const known = await decisionOn(apiWith(), turn, 'r', signal);
    assert.deepEqual(
      [known?.spec.decision, known?.spec.requester, known?.at, known?.object],
      ['Deny', 'jane', 't', undefined],
    );
    assert.equal(await decisionOn(apiWith(), turn, 'q', signal), undefined);
  });
});

test('a wait is over when the turn has ended or asks what nobody has decided and the caller does not know of', async () => {
  const over = (turn: StoredTurn, known?: string, ...items: StoredApproval[]) =>
    isSettled(apiWith(...items), turn, { known, signal });
  assert.equal(await over(turnWith({ phase: 'Running' })), false);
  assert.equal(await over(turnWith({ phase: 'Failed' })), true);
  assert.equal(await over(asks), true);
  assert.equal(await over(asks, 'q'), true);
  assert.equal(await over(asks, 'r'), false);
  assert.equal(await over(asks, undefined, made('decided', 1)), false, 'the controller has not taken the decision yet');
  const decided = { decision: 'Deny', approval: 'x', at: 't' } as const;
  const taken = turnWith({ phase: 'AwaitingApproval', approval: { ...approval, decided } });
  assert.equal(await over(taken), false, 'it waits for its pod');
});
