import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Cluster, KubeCluster } from '../../../../cli/cluster/cluster.ts';
import { createApproval, sendDecision } from '../../../../cli/cluster/decision.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';

const turn = { metadata: { namespace: 'default', name: 'a-1', uid: 'u' } } as StoredTurn;
const refusal = (code: number, reason: string) => new ApiError({ code, reason, message: `induced ${reason}` });
const first = {
  metadata: { name: 'approval-r', namespace: 'default', creationTimestamp: '2026-01-01T12:00:00Z' },
  spec: { turn: 'a-1', requestId: 'r', decision: 'Approve', requester: 'jane', note: 'fine' },
};

/** Decides as `requester` where the first decision is there already; `read`: what a read of it brings. */
function decide(requester: string, given: { decision: 'Approve' | 'Deny'; note?: string }, read: object = first) {
  const api = {
    create: () => Promise.reject(refusal(409, 'AlreadyExists')),
    get: async () => {
      if (read instanceof Error) throw read;
      return read;
    },
  };
  const kube = { api, namespace: 'default', author: async () => ({ requester }) } as unknown as KubeCluster;
  const { signal } = new AbortController();
  const cluster = {
    decide: (of: StoredTurn, id: string, what: typeof given) => createApproval(of, id, what, kube, signal),
  } as unknown as Cluster;
  return sendDecision(turn, 'r', given, cluster, signal);
}

describe('a second decision', () => {
  test('is refused with who has decided what, when and why', async () => {
    const text = 'jane has approved request "r" of turn "a-1" already, at 2026-01-01T12:00:00Z, with the note "fine"';
    for (const [by, given] of [
      ['joe', { decision: 'Approve', note: 'fine' }],
      ['jane', { decision: 'Deny', note: 'fine' }],
      ['jane', { decision: 'Approve' }],
    ] as const) {
      await assert.rejects(decide(by, given), (error) => {
        assert.ok((error as Error).message.startsWith(text), (error as Error).message);
        return (error as { code?: string }).code === 'Refused';
      });
    }
  });

  test('that is the same, by the same user, is none', async () => {
    await decide('jane', { decision: 'Approve', note: 'fine' });
  });

  test('is refused without a name where the caller may not read decisions', async () => {
    const hidden = decide('joe', { decision: 'Deny' }, refusal(403, 'Forbidden'));
    await assert.rejects(hidden, /somebody has decided on request r of turn a-1 already/);
  });

  test('through the HTTP API is refused in the words of its server', async () => {
    const cluster = { decide: () => Promise.reject(refusal(409, 'AlreadyDecided')) } as unknown as Cluster;
    const sent = sendDecision(turn, 'r', { decision: 'Deny' }, cluster, new AbortController().signal);
    await assert.rejects(sent, { code: 'Refused', message: 'induced AlreadyDecided' });
  });
});
