import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Connect, useBench } from './target.ts';

// A real garbage collector looks every 30 s which kinds there are, and begins anew where a definition comes or goes meanwhile.
const patient = { timeoutMs: 180_000 };

export function deletionContract(connect: Connect): void {
  describe('deletions', () => {
    const bench = useBench(connect);
    const gone = (path: string) =>
      eventually(async () => (await bench.api.get(path)).status === 404, { ...patient, what: `${path} is gone` });
    const owner = (object: { metadata: { name: string; uid: string } }, fields: object = {}) => ({
      apiVersion: 'contract.berth.dev/v1',
      kind: 'Widget',
      name: object.metadata.name,
      uid: object.metadata.uid,
      ...fields,
    });

    test('a deletion answers with a Status that says what is gone', async () => {
      const made = await bench.make();
      const { status, body } = await bench.api.delete(bench.at(made));
      assert.equal(status, 200);
      assert.equal(body.kind, 'Status');
      assert.equal(body.status, 'Success');
      assert.deepEqual(body.details, {
        name: made.metadata.name,
        group: 'contract.berth.dev',
        kind: 'widgets',
        uid: made.metadata.uid,
      });
      assert.equal((await bench.api.get(bench.at(made))).status, 404);
    });

    test('the uid and the version are preconditions', async () => {
      const made = await bench.make();
      const other = '11111111-1111-1111-1111-111111111111';
      const uid = await bench.api.delete(bench.at(made), { preconditions: { uid: other } });
      assert.equal(uid.status, 409);
      assert.equal(uid.body.reason, 'Conflict');
      assert.equal(
        uid.body.message,
        `Operation cannot be fulfilled on Widget.contract.berth.dev "${made.metadata.name}": the UID in the precondition (${other}) does not match the UID in record (${made.metadata.uid}). The object might have been deleted and then recreated`,
      );
      const version = await bench.api.delete(bench.at(made), { preconditions: { resourceVersion: '1' } });
      assert.equal(version.status, 409);
      const both = { uid: made.metadata.uid, resourceVersion: made.metadata.resourceVersion };
      assert.equal((await bench.api.delete(bench.at(made), { preconditions: both })).status, 200);
    });

    test('an object with a finalizer stays, marked, until the finalizer is removed', async () => {
      const made = await bench.make({ spec: { size: 1 } }, { finalizers: ['berth.dev/test'] });
      const { status, body } = await bench.api.delete(bench.at(made));
      assert.equal(status, 200);
      assert.equal(body.kind, 'Widget');
      assert.match(body.metadata.deletionTimestamp, /Z$/);
      assert.equal(body.metadata.deletionGracePeriodSeconds, 0);
      assert.equal(body.metadata.generation, 2);
      const added = await bench.api.patch(bench.at(made), {
        metadata: { finalizers: ['berth.dev/test', 'berth.dev/late'] },
      });
      assert.equal(added.status, 422);
      assert.match(
        added.body.message,
        /metadata\.finalizers: Forbidden: no new finalizers can be added if the object is being deleted/,
      );
      const freed = await bench.api.patch(bench.at(made), { metadata: { finalizers: null } });
      assert.equal(freed.status, 200, freed.text);
      assert.equal((await bench.api.get(bench.at(made))).status, 404);
    });

    test('dependents are deleted after their owner', async () => {
      const parent = await bench.make();
      const child = await bench.make({ spec: { size: 1 } }, { ownerReferences: [owner(parent)] });
      const name = bench.name('cm');
      await bench.api.post(`${bench.core}/configmaps`, { metadata: { name, ownerReferences: [owner(child)] } });
      await bench.api.delete(bench.at(parent));
      await gone(bench.at(child));
      await gone(`${bench.core}/configmaps/${name}`);
    });

    test('an object with two owners stays until both are gone', async () => {
      const one = await bench.make();
      const two = await bench.make();
      const child = await bench.make({ spec: { size: 1 } }, { ownerReferences: [owner(one), owner(two)] });
      await bench.api.delete(bench.at(one));
      await eventually(async () => (await bench.api.get(bench.at(child))).body.metadata.ownerReferences?.length === 1, {
        ...patient,
        what: 'the reference to the gone owner is removed',
      });
      await bench.api.delete(bench.at(two));
      await gone(bench.at(child));
    });

    test('an object whose owner is of another uid, so not there any more, is collected', async () => {
      const parent = await bench.make();
      const stale = { ...owner(parent), uid: '22222222-2222-2222-2222-222222222222' };
      const child = await bench.make({ spec: { size: 1 } }, { ownerReferences: [stale] });
      await gone(bench.at(child));
      assert.equal((await bench.api.get(bench.at(parent))).status, 200);
    });

    test('orphans stay and lose their owner', async () => {
      const parent = await bench.make();
      const child = await bench.make({ spec: { size: 1 } }, { ownerReferences: [owner(parent)] });
      await bench.api.delete(bench.at(parent), { propagationPolicy: 'Orphan' });
      await gone(bench.at(parent));
      const { body } = await bench.api.get(bench.at(child));
      assert.equal(body.metadata.ownerReferences, undefined);
    });

    test('a foreground deletion waits for the dependents that block the owner', async () => {
      const parent = await bench.make();
      const blocking = owner(parent, { blockOwnerDeletion: true });
      const child = await bench.make(
        { spec: { size: 1 } },
        { ownerReferences: [blocking], finalizers: ['berth.dev/test'] },
      );
      const { body } = await bench.api.delete(bench.at(parent), { propagationPolicy: 'Foreground' });
      assert.deepEqual(body.metadata.finalizers, ['foregroundDeletion']);
      await eventually(async () => (await bench.api.get(bench.at(child))).body.metadata.deletionTimestamp, {
        ...patient,
        what: 'the child is being deleted',
      });
      assert.equal((await bench.api.get(bench.at(parent))).status, 200);
      await bench.api.patch(bench.at(child), { metadata: { finalizers: null } });
      await gone(bench.at(parent));
    });

    test('an owner reference that is incomplete is 422', async () => {
      const { status, body } = await bench.api.post(
        bench.widgets,
        bench.widget({ spec: { size: 1 } }, { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x' }] }),
      );
      assert.equal(status, 422);
      const must = bench.isOlder ? 'uid must' : 'must';
      assert.ok(
        body.message.includes(`metadata.ownerReferences.uid: Invalid value: "": ${must} not be empty`),
        body.message,
      );
    });

    test('a pod without a node is gone at once, one with a grace period only when its kubelet says so', async () => {
      const name = bench.name('pod');
      const pod = {
        metadata: { name },
        spec: { terminationGracePeriodSeconds: 7, containers: [{ name: 'c', image: 'x:1' }], schedulerName: 'nobody' },
      };
      const unscheduled = await bench.api.post(`${bench.core}/pods`, pod);
      assert.equal(unscheduled.status, 201, unscheduled.text);
      const deleted = await bench.api.delete(`${bench.core}/pods/${name}`);
      assert.equal(deleted.status, 200);
      assert.equal(deleted.body.kind, 'Pod');
      assert.equal((await bench.api.get(`${bench.core}/pods/${name}`)).status, 404);

      await bench.api.post(`${bench.core}/pods`, { ...pod, spec: { ...pod.spec, nodeName: 'no-such-node' } });
      const marked = await bench.api.delete(`${bench.core}/pods/${name}`);
      assert.equal(marked.status, 200, marked.text);
      assert.equal(marked.body.metadata.deletionGracePeriodSeconds, 7);
      assert.match(marked.body.metadata.deletionTimestamp, /Z$/);
      assert.equal((await bench.api.get(`${bench.core}/pods/${name}`)).status, 200);
      const shorter = await bench.api.delete(`${bench.core}/pods/${name}`, { gracePeriodSeconds: 3 });
      assert.equal(shorter.body.metadata.deletionGracePeriodSeconds, 3);
      const other = { gracePeriodSeconds: 0, preconditions: { uid: '11111111-1111-1111-1111-111111111111' } };
      assert.equal((await bench.api.delete(`${bench.core}/pods/${name}`, other)).status, 409);
      const { uid } = marked.body.metadata;
      const finished = await bench.api.delete(`${bench.core}/pods/${name}`, {
        gracePeriodSeconds: 0,
        preconditions: { uid },
      });
      assert.equal(finished.status, 200);
      assert.equal((await bench.api.get(`${bench.core}/pods/${name}`)).status, 404);
    });

    test('a namespace goes with all that is in it, and takes nothing new meanwhile', async () => {
      const made = await bench.api.post('/api/v1/namespaces', { metadata: { generateName: 'contract-gone-' } });
      const { name } = made.body.metadata;
      assert.equal(made.body.status.phase, 'Active');
      assert.equal(made.body.metadata.labels['kubernetes.io/metadata.name'], name);
      const inside = `/apis/contract.berth.dev/v1/namespaces/${name}/widgets`;
      const held = await bench.api.post(
        inside,
        bench.widget({ spec: { size: 1 } }, { finalizers: ['berth.dev/test'] }),
      );
      assert.equal(held.status, 201, held.text);
      await bench.api.post(`/api/v1/namespaces/${name}/configmaps`, { metadata: { name: 'x' } });
      const deleted = await bench.api.delete(`/api/v1/namespaces/${name}`);
      assert.equal(deleted.status, 200);
      assert.equal(deleted.body.status.phase, 'Terminating');
      const refused = await bench.api.post(`/api/v1/namespaces/${name}/configmaps`, { metadata: { name: 'late' } });
      assert.equal(refused.status, 403);
      assert.equal(refused.body.reason, 'Forbidden');
      assert.equal(
        refused.body.message,
        `configmaps "late" is forbidden: unable to create new content in namespace ${name} because it is being terminated`,
      );
      assert.equal(refused.body.details.causes[0].reason, 'NamespaceTerminating');
      await gone(`/api/v1/namespaces/${name}/configmaps/x`);
      await bench.api.patch(`${inside}/${held.body.metadata.name}`, { metadata: { finalizers: null } });
      await gone(`/api/v1/namespaces/${name}`);
    });
  });
}
