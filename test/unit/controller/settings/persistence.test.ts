import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { sessionPod } from '../../../../controller/pod/pod.ts';
import { type Effective, effective, isProblem } from '../../../../controller/settings/effective.ts';
import type { SessionSpec } from '../../../../core/resources/session.ts';
import type { SessionClassSpec } from '../../../../core/resources/sessionclass.ts';
import { aClass, aSession, aWorld, RUNNING_STATUS, SESSION_UID } from '../../../support/world.ts';

const overrides: SessionClassSpec['overrides'] = ['agent.command', 'timeouts', 'persistence'];
const settings = (spec: Partial<SessionSpec>, sessionClass: Partial<SessionClassSpec> = {}) => {
  const { installation } = aWorld();
  return effective(aSession({ spec: spec as never }), aClass({ overrides, ...sessionClass }), installation);
};
const kept = (...args: Parameters<typeof settings>) => {
  const found = settings(...args);
  assert.ok(!isProblem(found), JSON.stringify(found));
  return (found as Effective).kept;
};
const refused = (...args: Parameters<typeof settings>) => {
  const found = settings(...args);
  assert.ok(isProblem(found));
  return found.message;
};

describe('data that outlives a pod', () => {
  test('is the state by default, as large as can be, and no volume', () => {
    assert.deepEqual(kept({}), { state: true });
  });
  test('is what the session, else its class says', () => {
    assert.deepEqual(kept({ persistence: { maxState: '1Mi' } }), { state: true, maxStateBytes: 1_048_576 });
    assert.deepEqual(kept({}, { persistence: { maxState: '2k' } }), { state: true, maxStateBytes: 2000 });
    const workspace = { type: 'Volume', size: '1Gi', storageClassName: 'fast' } as const;
    const expected = { size: '1Gi', storageClassName: 'fast', mountPath: '/workspace' };
    assert.deepEqual(kept({ persistence: { workspace } }).workspace, expected);
    assert.deepEqual(
      kept({}, { persistence: { workspace: { ...workspace, mountPath: '/src' } } }).workspace?.mountPath,
      '/src',
    );
    const none = { persistence: { workspace: { type: 'None' } } } as const;
    assert.equal(kept(none, { persistence: { workspace } }).workspace, undefined);
  });
  test('is at most what the class allows', () => {
    assert.equal(kept({}, { maxPersistence: { maxState: '1k' } }).maxStateBytes, 1000);
    assert.match(
      refused({ persistence: { maxState: '2k' } }, { maxPersistence: { maxState: '1k' } }),
      /^spec\.persistence\.maxState: 2k/,
    );
    const persistence = { workspace: { type: 'Volume', size: '2Gi' } } as const;
    assert.match(
      refused({ persistence }, { maxPersistence: { workspaceSize: '1Gi' } }),
      /^spec\.persistence\.workspace\.size: 2Gi/,
    );
    assert.match(refused({ persistence }, { maxPersistence: { workspaceSize: '0' } }), /more than the 0/);
  });
  test('is the class’s decision, unless it lets sessions set it', () => {
    assert.match(
      refused({ persistence: { maxState: '1k' } }, { overrides: ['agent.command'] }),
      /^spec\.persistence: the class does not allow/,
    );
  });
  test('may be nothing where there is a lifetime, the session’s own or its class’s', () => {
    assert.match(refused({ persistence: { state: false } }), /^spec\.timeouts\.lifetime: is not set/);
    assert.deepEqual(kept({ persistence: { state: false }, timeouts: { lifetime: '8h' } }), { state: false });
    assert.deepEqual(kept({ persistence: { state: false } }, { timeouts: { lifetime: '8h' } }), { state: false });
    assert.deepEqual(kept({ persistence: { state: false } }, { maxTimeouts: { lifetime: '8h' } }), { state: false });
  });
});

test('a session without a kept state that loses its pod between turns is suspended, and says that nothing is stored', () => {
  const session = aSession({
    spec: { persistence: { state: false }, timeouts: { lifetime: '8h' } },
    status: { ...RUNNING_STATUS, podUID: 'p-1' },
  });
  const memory = { confirmedGone: { podUID: 'p-1' } };
  const { status } = decide(aWorld({ session, memory, class: aClass({ overrides }) }));
  assert.equal(status.phase, 'Suspended');
  const condition = status.conditions?.find(({ type }) => type === 'StatePersisted');
  assert.deepEqual([condition?.status, condition?.reason], ['False', 'PersistenceOff']);
});

test('every incarnation mounts the same claim at the same path, as the same user', () => {
  const session = aSession({ spec: { persistence: { workspace: { type: 'Volume', size: '1Gi' } } } });
  const found = settings(session.spec as never) as Effective;
  const pods = [1, 2].map((incarnation) => sessionPod(session, incarnation, found).spec);
  for (const { volumes, containers, securityContext } of pods) {
    assert.deepEqual(volumes?.find(({ name }) => name === 'workspace')?.persistentVolumeClaim, {
      claimName: `w-${SESSION_UID}`,
    });
    assert.equal(containers[0]?.volumeMounts?.find(({ name }) => name === 'workspace')?.mountPath, '/workspace');
    assert.deepEqual(securityContext, pods[0]?.securityContext);
  }
});
