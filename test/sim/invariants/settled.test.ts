import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { pods } from '../../../core/kube/resources.ts';
import { environments, sessions } from '../../../core/resources/kinds.ts';
import type { SimServer } from '../api/server.ts';
import type { Kubelets } from '../cluster/kubelets.ts';
import { PROTOCOLS } from '../cluster/runner-image.ts';
import { Facts } from './facts.ts';
import { unsettled } from './settled.ts';

/** Protocol versions of two releases that do not understand each other's runners. */
const [OLD, , NEW] = PROTOCOLS;

/** Returns the facts of a world that has these objects; every pod runs, and its runner is of the old release. */
function factsOf(objects: Map<object, object[]>): Facts {
  const server = {
    list: (kind: object) => objects.get(kind) ?? [],
    get: (kind: object) => (kind === pods ? { metadata: { uid: 'pod-uid' }, status: { phase: 'Running' } } : undefined),
  };
  const kubelets = { isAlive: () => true, container: () => ({ protocol: OLD }) };
  const where = { namespace: 'berth', keys: 'keys', storeCeilingBytes: 0 };
  return new Facts(server as unknown as SimServer, kubelets as unknown as Kubelets, where, assert.fail);
}

describe('a world is not at rest', () => {
  const environment = (phase: string, reason: string) => ({
    metadata: { name: 'e' },
    status: { phase, conditions: [{ type: 'Ready', status: 'False', reason }] },
  });
  const left = (phase: string, reason: string) =>
    unsettled(factsOf(new Map([[environments, [environment(phase, reason)]]])));

  test('while the owner of a failed environment is about to replace it', () => {
    assert.deepEqual(left('Failed', 'BuildFailed'), ['environment e has failed: BuildFailed']);
    assert.deepEqual(left('Failed', 'StoreFull'), [], 'room comes only after the world is at rest');
    assert.deepEqual(left('Pending', 'NotBuilt'), []);
  });

  test('while a session has a runner that the present controller does not understand', () => {
    const session = {
      metadata: { namespace: 'a', name: 's', uid: 'u', generation: 1 },
      spec: {},
      status: { phase: 'Ready', observedGeneration: 1, podName: 'pod', podUID: 'pod-uid' },
    };
    const forgetful = { ...session, spec: { persistence: { state: false } } };
    const leftBy = (one: object, ...protocols: number[]) => {
      const facts = factsOf(new Map([[sessions, [one]]]));
      protocols.forEach((protocol, index) => {
        facts.controllerStarted(`ctl-${index}`, protocol);
      });
      return { facts, words: () => unsettled(facts) };
    };
    const why = ['session s: has a runner that the present controller does not understand'];
    const upgraded = leftBy(session, OLD, NEW);
    assert.deepEqual(upgraded.words(), why);
    assert.deepEqual(leftBy(session, NEW, OLD).words(), []);
    assert.deepEqual(leftBy(forgetful, OLD, NEW).words(), []);
    upgraded.facts.suspensionFailed('a/s');
    assert.deepEqual(upgraded.words(), []);
  });
});
