import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  apply,
  ended,
  get,
  kubectl,
  makeNamespace,
  release,
  releaseNamespace,
  session,
  tryKubectl,
  turn,
} from '../support/cluster.ts';
import { account, becomes, can } from '../support/rights.ts';

const everywhere = ['--all-namespaces'];
const own = ['-n', releaseNamespace];

describe('rights', () => {
  test('the API server puts the controller before other service accounts, its lease before all of them, and the API beside them', async () => {
    /** FlowSchema and priority level by which the API server served the request. */
    const servedBy = async (who: string, path: string) => {
      const { stderr } = await tryKubectl(['get', '--raw', path, '--as', who, '-v=8']);
      const named = async (kind: string, header: RegExp) => {
        const uid = header.exec(stderr)?.[1];
        const { items } = await get([kind]);
        return items.find(({ metadata }: { metadata: { uid: string } }) => metadata.uid === uid)?.metadata.name;
      };
      return [
        await named('flowschemas', /X-Kubernetes-Pf-Flowschema-Uid: (\S+)/i),
        await named('prioritylevelconfigurations', /X-Kubernetes-Pf-Prioritylevel-Uid: (\S+)/i),
      ];
    };
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${releaseNamespace}/leases/${release}-controller`;
    const pods = `/api/v1/namespaces/${releaseNamespace}/pods`;
    assert.deepEqual(
      [
        await servedBy(account('controller'), leases),
        await servedBy(account('controller'), pods),
        await servedBy(account('api'), pods),
      ],
      [
        [`${releaseNamespace}.${release}-controller-lease`, 'leader-election'],
        [`${releaseNamespace}.${release}-controller`, 'workload-high'],
        [`${releaseNamespace}.${release}-api`, 'workload-low'],
      ],
    );
  });

  test('the programs may do what they need and nothing else', async () => {
    const table: [string, string, string, string[], boolean][] = [
      ['controller', 'create', 'pods', everywhere, true],
      ['controller', 'patch', 'pods', everywhere, true],
      ['controller', 'update', 'pods', everywhere, false],
      ['controller', 'get', 'pods', ['--subresource', 'attach', ...everywhere], true],
      ['controller', 'create', 'pods', ['--subresource', 'attach', ...everywhere], true],
      ['controller', 'list', 'configmaps', everywhere, true],
      ['controller', 'update', 'configmaps', everywhere, false],
      ['controller', 'create', 'persistentvolumeclaims', everywhere, true],
      ['controller', 'delete', 'persistentvolumeclaims', everywhere, false],
      ['controller', 'create', 'networkpolicies.networking.k8s.io', everywhere, true],
      ['controller', 'update', 'networkpolicies.networking.k8s.io', everywhere, true],
      ['controller', 'delete', 'networkpolicies.networking.k8s.io', everywhere, true],
      ['controller', 'patch', 'networkpolicies.networking.k8s.io', everywhere, false],
      ['controller', 'update', 'turns.berth.dev', ['--subresource', 'status', ...everywhere], true],
      ['controller', 'get', `secrets/${release}-master-key`, own, true],
      ['controller', 'get', 'secrets', own, false],
      ['controller', 'list', 'secrets', everywhere, false],
      ['controller', 'get', `secrets/${release}-master-key`, ['-n', 'default'], false],
      ['controller', 'create', 'pods', ['--subresource', 'exec', ...everywhere], false],
      ['controller', 'delete', 'sessions.berth.dev', everywhere, true],
      ['controller', 'delete', 'turns.berth.dev', everywhere, true],
      // Sessions that build Environments.
      ['controller', 'create', 'sessions.berth.dev', everywhere, true],
      ['controller', 'list', 'environments.berth.dev', everywhere, true],
      ['controller', 'update', 'environments.berth.dev', ['--subresource', 'status', ...everywhere], true],
      ['controller', 'update', 'environments.berth.dev', everywhere, false],
      ['controller', 'create', 'environments.berth.dev', everywhere, false],
      ['controller', 'list', 'sessionpools.berth.dev', everywhere, true],
      ['controller', 'update', 'sessionpools.berth.dev', ['--subresource', 'status', ...everywhere], true],
      ['controller', 'update', 'sessionpools.berth.dev', everywhere, false],
      ['controller', 'create', 'sessionpools.berth.dev', everywhere, false],
      ['controller', 'update', 'sessions.berth.dev', everywhere, false],
      ['controller', 'update', 'sessionclasses.berth.dev', [], false],
      ['controller', 'list', 'nodes', [], true],
      ['controller', 'update', 'nodes', [], false],
      ['controller', 'list', 'namespaces', [], true],
      ['controller', 'update', 'namespaces', [], false],
      ['controller', 'setrequester', 'turns.berth.dev', everywhere, true],
      ['controller', 'setrequester', 'sessions.berth.dev', everywhere, false],
      ['controller', 'setrequester', 'approvals.berth.dev', everywhere, false],
      ['api', 'setrequester', 'sessions.berth.dev', everywhere, true],
      ['api', 'setrequester', 'turns.berth.dev', everywhere, true],
      ['api', 'setrequester', 'approvals.berth.dev', everywhere, true],
      ['api', 'create', 'subjectaccessreviews.authorization.k8s.io', [], true],
      ['api', 'create', 'sessions.berth.dev', everywhere, true],
      ['api', 'watch', 'sessions.berth.dev', everywhere, true],
      ['api', 'get', 'pods', ['--subresource', 'log', ...everywhere], true],
      ['api', 'delete', 'turns.berth.dev', everywhere, false],
      ['api', 'list', 'blobs.berth.dev', everywhere, false],
      ['api', 'create', 'approvals.berth.dev', everywhere, true],
      ['controller', 'create', 'approvals.berth.dev', everywhere, false],
      // OwnerReferencesPermissionEnforcement asks for it where an Approval gets an owner.
      ['controller', 'delete', 'approvals.berth.dev', everywhere, true],
      ['api', 'update', 'turns.berth.dev', ['--subresource', 'status', ...everywhere], false],
      // A pod without a runner has the redaction rules of its log with it.
      ['api', 'get', 'pods', everywhere, true],
      ['api', 'list', 'pods', everywhere, false],
      ['api', 'list', 'networkpolicies.networking.k8s.io', everywhere, false],
      ['api', 'get', 'secrets', own, false],
      // Without api.enter.enabled.
      ['api', 'get', 'pods', ['--subresource', 'exec', ...everywhere], false],
      ['api', 'create', 'pods', ['--subresource', 'exec', ...everywhere], false],
      ['api', 'get', 'pods', ['--subresource', 'attach', ...everywhere], false],
      ['api', 'create', 'pods', ['--subresource', 'portforward', ...everywhere], false],
    ];
    for (const [component, verb, resource, where, expected] of table) {
      const allowed = await can(account(component), verb, resource, ...where);
      assert.equal(allowed, expected, `${component} ${verb} ${resource} ${where.join(' ')}`);
    }
  });

  test('a user with view cannot create, and a user with edit can', async (t) => {
    const namespace = await makeNamespace(t);
    for (const role of ['view', 'edit', 'admin']) {
      await kubectl(['create', 'serviceaccount', role, '-n', namespace]);
      const subject = `--serviceaccount=${namespace}:${role}`;
      await kubectl(['create', 'rolebinding', role, '-n', namespace, `--clusterrole=${role}`, subject]);
      await becomes(true, `system:serviceaccount:${namespace}:${role}`, 'list', 'sessions.berth.dev', '-n', namespace);
    }
    const as = (role: string, args: string[], input?: object) =>
      tryKubectl([...args, '-n', namespace, '--as', `system:serviceaccount:${namespace}:${role}`], {
        input: JSON.stringify(input ?? ''),
      });
    const refused = await as('view', ['create', '-f', '-'], session(namespace, 'mine'));
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Forbidden|forbidden/);
    const made = await as('edit', ['create', '-f', '-'], session(namespace, 'mine'));
    assert.equal(made.code, 0, made.stderr);
    assert.equal((await as('view', ['get', 'sessions,turns,blobs,sessionpools'])).code, 0);
    const admin = `system:serviceaccount:${namespace}:admin`;
    await becomes(true, admin, 'create', 'sessionpools.berth.dev', '-n', namespace);
    await becomes(true, admin, 'patch', 'sessionpools.berth.dev', '--subresource', 'scale', '-n', namespace);
    const editor = `system:serviceaccount:${namespace}:edit`;
    assert.equal(await can(editor, 'create', 'sessionpools.berth.dev', '-n', namespace), false);
    const status = await as('edit', [
      'patch',
      'session',
      'mine',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"phase":"Ready"}}',
    ]);
    assert.match(status.stderr, /forbidden/);
  });

  test('an author cannot name another requester, with the right to do so it can', async (t) => {
    const namespace = await makeNamespace(t);
    await kubectl(['create', 'serviceaccount', 'ann', '-n', namespace]);
    const ann = `system:serviceaccount:${namespace}:ann`;
    const bind = (role: string) =>
      kubectl([
        ...['create', 'rolebinding', role, '-n', namespace, `--clusterrole=${role}`],
        `--serviceaccount=${namespace}:ann`,
      ]);
    await bind('edit');
    await bind(`${release}-approve`);
    for (const kind of ['sessions', 'turns', 'approvals']) {
      await becomes(true, ann, 'create', `${kind}.berth.dev`, '-n', namespace);
    }
    const spec = { turn: 'none', requestId: 'r', decision: 'Deny' };
    const objects = (requester: string): [string, object][] => [
      ['sessions', session(namespace, 'named', { requester })],
      ['turns', turn(namespace, 'named', 'none', 1, { requester })],
      [
        'approvals',
        {
          ...{ apiVersion: 'berth.dev/v1alpha1', kind: 'Approval', metadata: { namespace, name: 'named' } },
          spec: { ...spec, requester },
        },
      ],
    ];
    const create = (object: object) =>
      tryKubectl(['create', '--dry-run=server', '-f', '-', '--as', ann], { input: JSON.stringify(object) });
    for (const [kind, object] of objects('bob')) {
      const { stderr } = await create(object);
      assert.match(stderr, /spec\.requester is "bob", and you are "system:serviceaccount:\S+:ann"; leave it out/, kind);
      assert.match(stderr, new RegExp(`verb setrequester on ${kind}\\.berth\\.dev in namespace ${namespace}`));
    }
    for (const [, object] of objects(ann)) assert.equal((await create(object)).code, 0);
    await apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { namespace, name: 'restorer' },
      rules: [{ apiGroups: ['berth.dev'], resources: ['sessions', 'turns', 'approvals'], verbs: ['setrequester'] }],
    });
    await kubectl([
      ...['create', 'rolebinding', 'restorer', '-n', namespace, '--role=restorer'],
      `--serviceaccount=${namespace}:ann`,
    ]);
    for (const [kind, object] of objects('bob')) {
      await becomes(true, ann, 'setrequester', `${kind}.berth.dev`, '-n', namespace);
      const { code, stderr } = await create(object);
      assert.equal(code, 0, stderr);
    }
  });

  test('the account of the controller changes, deletes and attaches to pods of sessions alone', async (t) => {
    const namespace = await makeNamespace(t);
    const restricted = {
      ...{ runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      seccompProfile: { type: 'RuntimeDefault' },
    };
    const containers = [{ name: 'main', image: 'none:1', stdin: true, securityContext: restricted }];
    const foreign = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name: 'web' } };
    await apply(
      { ...foreign, spec: { schedulerName: 'nobody', containers } },
      session(namespace, 'mine'),
      turn(namespace, 'first', 'mine', 'hello'),
    );
    await ended(namespace, 'first');
    const { status } = await get(['session', 'mine', '-n', namespace]);
    const as = (...args: string[]) => tryKubectl([...args, '-n', namespace, '--as', account('controller')]);
    for (const args of [
      ['delete', 'pod', 'web', '--dry-run=server'],
      ['label', 'pod', 'web', 'seen=yes', '--dry-run=server'],
      ['attach', 'web', '-i'],
    ]) {
      const { code, stderr } = await as(...args);
      assert.notEqual(code, 0, args.join(' '));
      assert.match(stderr, /denied request: the controller of Berth/, args.join(' '));
    }
    for (const args of [
      ['delete', 'pod', status.podName, '--dry-run=server'],
      ['label', 'pod', status.podName, 'berth.dev/session=other', '--overwrite', '--dry-run=server'],
    ]) {
      const { code, stderr } = await as(...args);
      assert.equal(code, 0, stderr);
    }
  });
});
