import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { KubeClient } from '../../../core/kube/client.ts';
import { ApiError } from '../../../core/kube/errors.ts';
import type { KubeObject, Resource } from '../../../core/kube/types.ts';
import { approvals, sessions, turns } from '../../../core/resources/kinds.ts';
import { Installation } from '../../support/installation.ts';
import { ASKS, asked } from '../approvals/support.ts';
import { Caller } from '../cli/support.ts';

const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' };
const roles: Resource = { ...RBAC, plural: 'roles', kind: 'Role', namespaced: true };
const roleBindings: Resource = { ...RBAC, plural: 'rolebindings', kind: 'RoleBinding', namespaced: true };
const NAMESPACE = 'default';

/** Each kind with a requester, and a spec of it. */
const KINDS = [
  [sessions, {}],
  [turns, { session: 'nobody' }],
  [approvals, { turn: 'nothing', requestId: 'r', decision: 'Approve' }],
] as [Resource, object][];

const isDenial = (message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === 403 && message.test(error.message);

describe('who asked and who approved', () => {
  let cluster: Installation;
  let caller: Caller;
  beforeAll(async () => {
    cluster = await Installation.start();
    cluster.startController();
    caller = new Caller(join(import.meta.dirname, '..', '..', '..'));
  });
  afterAll(async () => {
    caller.remove();
    await cluster.stop();
  });

  /** Lets a user work with the three kinds in the namespace, and with these further verbs. */
  const grant = async (user: string, ...verbs: string[]): Promise<void> => {
    const metadata = { name: user, namespace: NAMESPACE };
    const resources = KINDS.map(([{ plural }]) => plural);
    const rule = { apiGroups: ['berth.dev'], resources, verbs: ['get', 'list', 'watch', 'create', 'patch', ...verbs] };
    await cluster.client.create(roles, { metadata, rules: [rule] } as KubeObject);
    await cluster.client.create(roleBindings, {
      metadata,
      roleRef: { apiGroup: RBAC.group, kind: 'Role', name: user },
      subjects: [{ kind: 'User', name: user }],
    } as KubeObject);
  };
  const create = (as: KubeClient, [resource, spec]: [Resource, object], name: string, requester?: string) => {
    const named = requester === undefined ? {} : { requester };
    const object = { metadata: { name, namespace: NAMESPACE }, spec: { ...spec, ...named } } as KubeObject;
    return as.create(resource, object) as Promise<KubeObject & { spec: { requester?: string } }>;
  };

  test('an author names nobody or the author, and others are refused with what to do', async () => {
    await grant('ann');
    const ann = await cluster.as('ann');
    for (const kind of KINDS) {
      const [{ plural }] = kind;
      assert.equal((await create(ann, kind, 'ann-nobody')).spec.requester, undefined);
      assert.equal((await create(ann, kind, 'ann-self', 'ann')).spec.requester, 'ann');
      const told = new RegExp(
        `^${plural}\\.berth\\.dev "ann-other" is forbidden: .*spec\\.requester is "bob", and you are "ann"; leave it out or name yourself\\. To name others you need the verb setrequester on ${plural}\\.berth\\.dev in namespace default$`,
      );
      await assert.rejects(create(ann, kind, 'ann-other', 'bob'), isDenial(told));
    }
  });

  test('the verb setrequester lets an author name others, in its namespace only', async () => {
    await grant('restorer', 'setrequester');
    const restorer = await cluster.as('restorer');
    for (const kind of KINDS) {
      assert.equal((await create(restorer, kind, 'restored', 'bob')).spec.requester, 'bob');
    }
    const [resource, spec] = KINDS[0] as [Resource, object];
    const elsewhere = { metadata: { name: 'restored', namespace: 'kube-public' }, spec: { ...spec, requester: 'bob' } };
    await assert.rejects(restorer.create(resource, elsewhere as KubeObject), isDenial(/cannot create resource/));
  });

  test('a requester cannot be changed, added or removed', async () => {
    const { client } = cluster;
    for (const kind of KINDS) {
      const [resource] = kind;
      await create(client, kind, 'fixed-named', 'bob');
      await create(client, kind, 'fixed-nobody');
      for (const [name, requester] of [
        ['fixed-named', 'eve'],
        ['fixed-named', null],
        ['fixed-nobody', 'eve'],
      ]) {
        const ref = { namespace: NAMESPACE, name: name as string };
        const patch = client.patch(resource, ref, { spec: { requester } });
        await assert.rejects(patch, (error) => error instanceof ApiError && error.code === 422, resource.plural);
      }
    }
  });

  test('berth fills in who calls it: in a session, its turn and an approval', async () => {
    await grant('carla');
    const env = { KUBECONFIG: cluster.kubeconfigOf('carla') };
    const run = await caller.berth(['run', '--name', 'carlas', '-o', 'json', '--', 'true'], { env });
    assert.equal(JSON.parse(run.stdout).spec.requester, 'carla', run.stderr);
    assert.equal((await cluster.session('carlas')).spec.requester, 'carla');
    assert.match((await caller.berth(['get', 'carlas'], { env })).stdout, /^ +requester +carla$/m);

    await cluster.create('asks', { agent: ASKS });
    const given = ['turn', 'asks', '--name', 'asks-1', '--no-wait', '--input', '{"questions": ["May I?"]}'];
    const turn = await caller.berth(given, { env });
    assert.equal(turn.code, 0, turn.stderr);
    await asked(cluster, 'asks-1');
    const approve = await caller.berth(['approve', 'asks'], { env });
    assert.equal(approve.code, 0, approve.stderr);
    const ended = await cluster.ended('asks-1');
    assert.equal(ended.spec.requester, 'carla');
    assert.equal(ended.status?.approval?.decided?.by, 'carla');
  });

  test('berth leaves the requester out where the cluster does not say who calls', async () => {
    const { faults } = cluster.server;
    const reviews = ({ resource = '' }: { resource?: string }) => resource === 'selfsubjectreviews';
    faults.failNext(reviews, { code: 403, reason: 'Forbidden', message: 'induced' });
    const env = { KUBECONFIG: cluster.kubeconfig };
    const { code, stderr } = await caller.berth(['create', 'unknown', '--', 'true'], { env });
    assert.equal(code, 0, stderr);
    assert.equal((await cluster.session('unknown')).spec.requester, undefined);
    await cluster.delete('unknown');
  });

  test('the turn of a session’s input has the session’s requester', async () => {
    await grant('dora');
    const dora = await cluster.as('dora');
    const spec = { agent: { command: ['cat'], input: 'Text', result: 'Text' }, input: 'hi', turns: 'One' };
    await create(dora, [sessions as Resource, spec], 'doras', 'dora');
    const { status, spec: given } = await cluster.ended('doras');
    assert.equal(status?.phase, 'Succeeded', JSON.stringify(status));
    assert.equal(given.requester, 'dora');
  });

  test('an approval without a requester records nobody as the approver', async () => {
    await cluster.create('silent', { agent: ASKS });
    await cluster.turn('silent', 'silent-1', { questions: ['May I?'] });
    const requestId = (await asked(cluster, 'silent-1')).status?.approval?.id;
    await grant('eric');
    const eric = await cluster.as('eric');
    const approval: [Resource, object] = [approvals as Resource, { turn: 'silent-1', requestId, decision: 'Approve' }];
    await assert.rejects(create(eric, approval, 'forged', 'ann'), isDenial(/leave it out or name yourself/));
    await create(eric, approval, 'given');
    const { decided } = (await cluster.ended('silent-1')).status?.approval ?? {};
    assert.deepEqual([decided?.approval, decided?.by], ['given', undefined]);
  });
});
