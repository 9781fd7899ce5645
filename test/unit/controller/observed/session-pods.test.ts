import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { isOurs, isSessionPod, sessionNameOf } from '../../../../controller/observed/session-pods.ts';
import { aPod, aSession, RUNNING_STATUS, SESSION_UID as UID } from '../../../support/world.ts';

describe('a pod is Berth’s', () => {
  const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 'notes', uid: UID };
  const labels = {
    'app.kubernetes.io/managed-by': 'berth',
    'berth.dev/session-uid': UID,
    'berth.dev/incarnation': '1',
  };
  const { 'app.kubernetes.io/managed-by': _, ...unmanaged } = labels;
  const other = { ...labels, 'app.kubernetes.io/managed-by': 'Helm' };
  const pod = (change: object) => {
    const made = aPod();
    return { ...made, metadata: { ...made.metadata, labels, ownerReferences: [owner], ...change } };
  };
  for (const [what, change] of [
    ['by its name, its labels and its owner together', {}],
    ['whatever its label managed-by has become, as long as its session owns it', { labels: other }],
    ['also without that label', { labels: unmanaged }],
    ['after an orphaning deletion, by its name and all its labels', { ownerReferences: [] }],
  ] as const) {
    test(what, () => assert.equal(isSessionPod(pod(change)), true));
  }
  test('for the session that owns it, whatever its label says; an orphan’s label counts', () => {
    const labelled = { labels: { ...labels, 'berth.dev/session': 'other' } };
    assert.equal(sessionNameOf(pod(labelled)), 'notes');
    assert.equal(sessionNameOf(pod({ ...labelled, ownerReferences: [] })), 'other');
  });
  for (const [what, change] of [
    ['another name', { name: 'my-pod' }],
    ['a name of another incarnation', { name: `s-${UID}-2` }],
    ['a label of another incarnation', { labels: { ...labels, 'berth.dev/incarnation': '2' } }],
    ['an owner of another kind', { ownerReferences: [{ ...owner, kind: 'Job', apiVersion: 'batch/v1' }] }],
    ['an owner of another uid', { ownerReferences: [{ ...owner, uid: 'other' }] }],
    ['neither an owner nor the label managed-by', { ownerReferences: [], labels: other }],
    ['no label of a session', { labels: { 'app.kubernetes.io/managed-by': 'berth' } }],
  ] as const) {
    test(`not with ${what}`, () => assert.equal(isSessionPod(pod(change)), false));
  }
});

describe('a pod that has the name of the incarnation’s', () => {
  const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 'notes', uid: UID };
  const labels = { 'berth.dev/session-uid': UID, 'berth.dev/incarnation': '1' };
  const session = aSession({ status: RUNNING_STATUS });
  const pod = (change: object) => {
    const made = aPod();
    return { ...made, metadata: { ...made.metadata, labels, ownerReferences: [owner], ...change } };
  };
  test('is taken up with the labels and the owner that the controller gives', () => {
    assert.equal(isOurs(pod({}), session), true);
    const volume = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };
    assert.equal(isOurs(pod({ ownerReferences: [volume, owner] }), session), true);
  });
  for (const [what, change] of [
    ['the label of another session', { labels: { ...labels, 'berth.dev/session-uid': 'other' } }],
    ['the label of another incarnation', { labels: { ...labels, 'berth.dev/incarnation': '2' } }],
    ['no label of an incarnation', { labels: { 'berth.dev/session-uid': UID } }],
    ['no labels', { labels: undefined }],
    ['another session of the name as its owner', { ownerReferences: [{ ...owner, uid: 'other' }] }],
    ['an owner of another kind with the uid', { ownerReferences: [{ ...owner, kind: 'Job', apiVersion: 'batch/v1' }] }],
    ['no owner', { ownerReferences: undefined }],
  ] as const) {
    test(`is somebody else’s with ${what}`, () => assert.equal(isOurs(pod(change), session), false));
  }
});
