import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { sessionpools } from '../../../core/resources/kinds.ts';
import { networkPolicyName, podName, poolPodName, workspaceName } from '../../../core/resources/names.ts';
import { CONTROLLER, Installation } from '../../support/installation.ts';
import { RawApi } from '../../support/raw-api.ts';

const CORE = '/api/v1/namespaces/default';
const POLICIES = '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies';
const DRY = '?dryRun=All';

const OTHER = '9e1f6c1e-77aa-4f0e-8a61-0a3f2f6f1d22';

const pod = (name: string, ownerReferences: object[] = [], more: object = {}) => ({
  metadata: { name, ownerReferences, ...more },
  spec: { schedulerName: 'nobody', containers: [{ name: 'main', image: 'x' }] },
});
const claim = (name: string, ownerReferences: object[]) => ({
  metadata: { name, ownerReferences },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
});
const networkPolicy = (name: string, labels: object, matchLabels: object) => ({
  metadata: { name, labels },
  spec: { podSelector: { matchLabels } },
});
const own = { 'app.kubernetes.io/managed-by': 'berth', 'berth.dev/network': 'quick' };
const quick = { 'berth.dev/network': 'quick' };

describe('the account of the controller', () => {
  let cluster: Installation;
  let admin: RawApi;
  let controller: RawApi;
  /** UID of a Session, which owns what is made for it: the garbage collector deletes what has an owner that is not there. */
  let uid = '';
  beforeAll(async () => {
    cluster = await Installation.start();
    uid = (await cluster.create('mine', {})).metadata.uid;
    const connect = (username: string, groups: string[]) =>
      new RawApi({
        url: cluster.server.url,
        ca: cluster.server.ca,
        token: cluster.server.mintToken({ username, groups }),
      });
    admin = connect('admin', ['system:masters']);
    controller = connect(CONTROLLER, ['system:authenticated']);
  });
  afterAll(async () => {
    await Promise.all([admin.close(), controller.close()]);
    await cluster.stop();
  });

  const owner = (fields: object = {}) => ({
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'Session',
    name: 'mine',
    uid,
    controller: true,
    ...fields,
  });
  const replicaSet = () => owner({ apiVersion: 'apps/v1', kind: 'ReplicaSet' });
  const made = async (path: string, object: object) => {
    const { status, text } = await admin.post(path, object);
    assert.equal(status, 201, text);
  };
  const denies = (answer: { status: number; text: string }, what: string) => {
    assert.equal(answer.status, 403, `${what}: ${answer.text}`);
    assert.match(answer.text, /denied request: the controller of Berth /, what);
  };
  const allows = (answer: { status: number; text: string }, what: string) =>
    assert.ok(answer.status < 300, `${what}: ${answer.text}`);

  test('creates only pods that a Session owns, with the name of its incarnation', async () => {
    const create = (object: object) => controller.post(`${CORE}/pods${DRY}`, object);
    const name = podName(uid, 3);
    allows(await create(pod(name, [owner()])), 'a pod of a Session');
    for (const [what, object] of Object.entries({
      'no owner': pod(name),
      'an owner that is not the controller': pod(name, [owner({ controller: false })]),
      'another kind of owner': pod(name, [replicaSet()]),
      'a Session of another group': pod(name, [owner({ apiVersion: 'other.dev/v1' })]),
      'the name of another Session': pod(podName(OTHER, 3), [owner()]),
      'another name': pod('web-1', [owner()]),
    })) {
      denies(await create(object), what);
    }
  });

  test('changes and deletes only pods of Sessions, whatever their labels are', async () => {
    const names = {
      mine: podName(uid, 4),
      relabelled: podName(uid, 5),
      orphan: podName(uid, 6),
      taken: podName(uid, 7),
      web: 'web-2',
    };
    await made(`${CORE}/pods`, pod(names.mine, [owner()]));
    await made(`${CORE}/pods`, pod(names.relabelled, [owner()], { labels: { 'berth.dev/session-uid': 'wrong' } }));
    await made(`${CORE}/pods`, pod(names.orphan));
    await made(`${CORE}/pods`, pod(names.taken, [replicaSet()]));
    await made(`${CORE}/pods`, pod(names.web, [], { labels: own }));
    const patch = { metadata: { labels: { seen: 'yes' } } };
    for (const name of [names.mine, names.relabelled, names.orphan]) {
      allows(await controller.patch(`${CORE}/pods/${name}${DRY}`, patch), `patch of ${name}`);
      allows(await controller.delete(`${CORE}/pods/${name}${DRY}`), `deletion of ${name}`);
    }
    for (const name of [names.taken, names.web]) {
      denies(await controller.patch(`${CORE}/pods/${name}${DRY}`, patch), `patch of ${name}`);
      denies(await controller.delete(`${CORE}/pods/${name}${DRY}`), `deletion of ${name}`);
    }
    allows(await admin.delete(`${CORE}/pods/${names.web}`), 'a deletion by somebody else');
  });

  test('creates only pods that a SessionPool owns, and changes, deletes and attaches to them before and after a claim', async () => {
    const ref = { namespace: 'default', name: 'mine' };
    const object = { apiVersion: 'berth.dev/v1alpha1', kind: 'SessionPool', metadata: ref };
    const spec = { class: 'none', replicas: 0 };
    const pool = (await cluster.client.create(sessionpools, { ...object, spec } as never)).metadata.uid;
    const ofPool = (fields: object = {}) => owner({ kind: 'SessionPool', uid: pool, ...fields });
    const create = (object: object) => controller.post(`${CORE}/pods${DRY}`, object);
    allows(await create(pod(poolPodName(pool, 1), [ofPool()])), 'a pod of a SessionPool');
    denies(await create(pod(poolPodName(OTHER, 1), [ofPool()])), 'the name of another SessionPool');
    denies(await create(pod(podName(pool, 1), [ofPool()])), 'the name of a Session’s pod');
    denies(await create(pod(poolPodName(pool, 1), [owner()])), 'another owner at its creation');

    const [waiting, claimed, taken] = [2, 3, 4].map((number) => poolPodName(pool, number));
    await made(`${CORE}/pods`, pod(waiting as string, [ofPool()]));
    await made(`${CORE}/pods`, pod(claimed as string, [owner()]));
    await made(`${CORE}/pods`, pod(taken as string, [replicaSet()]));
    const claim = { metadata: { ownerReferences: [owner()] } };
    for (const name of [waiting, claimed]) {
      allows(await controller.patch(`${CORE}/pods/${name}${DRY}`, claim), `claim of ${name}`);
      allows(await controller.delete(`${CORE}/pods/${name}${DRY}`), `deletion of ${name}`);
    }
    denies(await controller.patch(`${CORE}/pods/${taken}${DRY}`, claim), 'claim of a pod with another controller');
    denies(await controller.delete(`${CORE}/pods/${taken}${DRY}`), 'deletion of a pod with another controller');
    assert.equal((await controller.get(`${CORE}/pods/${poolPodName(OTHER, 5)}/attach?stdin=true`)).status, 404);
  });

  test('attaches only to pods with the name of a Session’s incarnation', async () => {
    const attach = (name: string) => controller.get(`${CORE}/pods/${name}/attach?stdin=true`);
    denies(await attach('web-3'), 'a pod of another name');
    denies(await attach(`x${podName(uid, 1)}`), 'a name that only contains one');
    assert.equal((await attach(podName(uid, 1))).status, 404);
  });

  test('creates only volumes that a Session owns', async () => {
    const create = (object: object) => controller.post(`${CORE}/persistentvolumeclaims${DRY}`, object);
    allows(await create(claim(workspaceName(uid), [owner()])), 'a volume of a Session');
    denies(await create(claim(workspaceName(uid), [])), 'no owner');
    denies(await create(claim(workspaceName(OTHER), [owner()])), 'the name of another Session');
  });

  test('writes only NetworkPolicies for pods of Sessions, and touches no others', async () => {
    const name = networkPolicyName('quick');
    allows(await controller.post(`${POLICIES}${DRY}`, networkPolicy(name, own, quick)), 'one of a class');
    const open = networkPolicy('open', own, {});
    denies(await controller.post(`${POLICIES}${DRY}`, open), 'one for all pods');
    denies(await controller.post(`${POLICIES}${DRY}`, networkPolicy(name, own, {})), 'one of its name for all pods');

    await made(POLICIES, networkPolicy(name, own, quick));
    const slow = { 'berth.dev/network': 'slow' };
    await made(POLICIES, networkPolicy('berth-slow', slow, slow));
    await made(POLICIES, networkPolicy('other', own, quick));
    const put = async (which: string, change: object) => {
      const { body } = await admin.get(`${POLICIES}/${which}`);
      return controller.put(`${POLICIES}/${which}${DRY}`, { ...body, ...change });
    };
    allows(await put(name, {}), 'a change of its own');
    denies(await put(name, { spec: { podSelector: {} } }), 'a change to all pods');
    denies(await put('berth-slow', {}), 'a change of a policy without its labels');
    for (const which of ['berth-slow', 'other']) {
      denies(await controller.delete(`${POLICIES}/${which}${DRY}`), `a deletion of ${which}`);
    }
    allows(await controller.delete(`${POLICIES}/${name}${DRY}`), 'a deletion of its own');
  });
});
