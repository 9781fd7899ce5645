import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Connect, useBench } from './target.ts';

const rbac = '/apis/rbac.authorization.k8s.io/v1';
const coordination = '/apis/coordination.k8s.io/v1';

export function builtinContract(connect: Connect): void {
  describe('built-in kinds', () => {
    const bench = useBench(connect);
    const leases = () => `${coordination}/namespaces/${bench.namespace}/leases`;
    const main = { name: 'main', image: 'x:1' };
    const pod = (spec: object = {}, metadata: object = {}) => ({
      metadata: { name: bench.name('pod'), ...metadata },
      spec: { automountServiceAccountToken: false, schedulerName: 'nobody', containers: [main], ...spec },
    });
    const refused = async (path: string, body: object, code: number, ...messages: (string | RegExp)[]) => {
      const answer = await bench.api.post(path, body);
      assert.equal(answer.status, code, answer.text);
      for (const message of messages) {
        const told =
          typeof message === 'string' ? answer.body.message.includes(message) : message.test(answer.body.message);
        assert.ok(told, `${message} is not in: ${answer.body.message}`);
      }
    };
    beforeAll(() =>
      eventually(async () => (await bench.api.get(`${bench.core}/serviceaccounts/default`)).status === 200, {
        what: 'the service account is there',
      }),
    );

    test('a new pod is pending, with every default filled in', async () => {
      const { body, text } = await bench.api.post(
        `${bench.core}/pods`,
        pod({
          containers: [
            {
              ...main,
              env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
              ports: [{ containerPort: 80 }],
              resources: { limits: { cpu: 1, memory: '1Gi' } },
            },
            { name: 'second', image: 'y' },
          ],
          volumes: [{ name: 'empty' }, { name: 'secret', secret: { secretName: 'x' } }],
        }),
      );
      assert.equal(body.status?.phase, 'Pending', text);
      assert.equal(body.status.qosClass, 'Burstable');
      assert.equal(body.metadata.generation, bench.isOlder ? undefined : 1);
      const { spec } = body;
      assert.equal(spec.restartPolicy, 'Always');
      assert.equal(spec.terminationGracePeriodSeconds, 30);
      assert.equal(spec.dnsPolicy, 'ClusterFirst');
      assert.equal(spec.enableServiceLinks, true);
      assert.equal(spec.serviceAccountName, 'default');
      assert.deepEqual(spec.securityContext, {});
      assert.equal(spec.tolerations.length, 2);
      const [first, second] = spec.containers;
      assert.deepEqual(first.resources, { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1', memory: '1Gi' } });
      assert.equal(first.env[0].valueFrom.fieldRef.apiVersion, 'v1');
      assert.equal(first.ports[0].protocol, 'TCP');
      assert.equal(first.imagePullPolicy, 'IfNotPresent');
      assert.equal(first.terminationMessagePath, '/dev/termination-log');
      assert.equal(second.imagePullPolicy, 'Always');
      assert.deepEqual(spec.volumes, [
        { name: 'empty', emptyDir: {} },
        { name: 'secret', secret: { secretName: 'x', defaultMode: 420 } },
      ]);
    });

    test('a pod that cannot work is refused with every reason', async () => {
      const pods = `${bench.core}/pods`;
      await refused(pods, pod({ containers: [] }), 422, 'spec.containers: Required value');
      await refused(
        pods,
        pod({
          restartPolicy: 'Sometimes',
          containers: [
            { name: 'Main', image: '', env: [{ name: '' }, { name: 'a=b', value: 'x' }] },
            { name: 'two', image: 'x', volumeMounts: [{ name: 'missing', mountPath: '' }] },
            { name: 'two', image: 'x' },
          ],
        }),
        422,
        /spec\.containers\[0\]\.name: Invalid value: "Main": a lowercase RFC 1123 label must consist of/,
        'spec.containers[0].image: Required value',
        'spec.containers[0].env[0].name: Required value',
        'spec.containers[0].env[1].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than \'=\'',
        'spec.containers[1].volumeMounts[0].name: Not found: "missing"',
        'spec.containers[1].volumeMounts[0].mountPath: Required value',
        'spec.containers[2].name: Duplicate value: "two"',
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
      );
      const requests = { requests: { cpu: '2' }, limits: { cpu: '1' } };
      await refused(
        pods,
        pod({ containers: [{ ...main, resources: requests }] }),
        422,
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
      );
      const nonsense = { limits: { cpu: 'much' } };
      await refused(pods, pod({ containers: [{ ...main, resources: nonsense }] }), 400, 'cannot be handled as a Pod');
      await refused(pods, pod({ containers: 'x' }), 400, 'cannot be handled as a Pod');
      await refused(
        pods,
        pod({ serviceAccountName: 'nobody' }),
        403,
        `error looking up service account ${bench.namespace}/nobody: serviceaccount "nobody" not found`,
      );
      await refused(
        `${pods}?fieldValidation=Strict`,
        pod({ containers: [{ ...main, imagee: 'x' }] }),
        400,
        'strict decoding error: unknown field "spec.containers[0].imagee"',
      );
    });

    test('of a pod that is there little can change', async () => {
      const { body } = await bench.api.post(`${bench.core}/pods`, pod());
      const path = `${bench.core}/pods/${body.metadata.name}`;
      const grace = await bench.api.patch(path, { spec: { terminationGracePeriodSeconds: 3 } });
      assert.equal(grace.status, 422);
      assert.match(
        grace.body.message,
        /spec: Forbidden: pod updates may not change fields other than `spec\.containers\[\*\]\.image`/,
      );
      const image = await bench.api.patch(
        path,
        { spec: { containers: [{ name: 'main', image: 'x:2' }] } },
        'strategic',
      );
      assert.equal(image.status, 200, image.text);
      assert.equal(image.body.metadata.generation, bench.isOlder ? undefined : 2);
      const labelled = await bench.api.patch(path, { metadata: { labels: { a: 'b' } } });
      assert.equal(labelled.body.metadata.generation, bench.isOlder ? undefined : 2);
      const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
      const set = await bench.api.patch(`${path}/status`, { status }, 'strategic');
      assert.equal(set.body.status.phase, 'Running');
      assert.equal(set.body.spec.containers[0].image, 'x:2');
    });

    test('pods are selected by node and phase', async () => {
      const { body } = await bench.api.post(`${bench.core}/pods`, pod({ nodeName: 'no-such-node' }));
      const query = encodeURIComponent('spec.nodeName=no-such-node,status.phase=Pending');
      const list = (await bench.api.get(`${bench.core}/pods?fieldSelector=${query}`)).body;
      assert.deepEqual(
        list.items.map((item: { metadata: { name: string } }) => item.metadata.name),
        [body.metadata.name],
      );
      await bench.api.delete(`${bench.core}/pods/${body.metadata.name}`, { gracePeriodSeconds: 0 });
    });

    test('items of a list of a built-in kind do not repeat the kind', async () => {
      const { body } = await bench.api.get(`${bench.core}/serviceaccounts`);
      assert.equal(body.kind, 'ServiceAccountList');
      assert.equal(body.items[0].kind, undefined);
      assert.equal(body.items[0].apiVersion, undefined);
    });

    test('a strategic merge patch deletes, orders and replaces as it says', async () => {
      const tolerations = [{ key: 'a', operator: 'Exists' }];
      const { body } = await bench.api.post(
        `${bench.core}/pods`,
        pod({ tolerations }, { finalizers: ['a.dev/x', 'b.dev/y'], labels: { a: '1', b: '2' } }),
      );
      const path = `${bench.core}/pods/${body.metadata.name}`;
      const patched = await bench.api.patch(
        path,
        { metadata: { labels: { a: null, c: '3' }, '$deleteFromPrimitiveList/finalizers': ['a.dev/x'] } },
        'strategic',
      );
      assert.deepEqual(patched.body.metadata.labels, { b: '2', c: '3' });
      assert.deepEqual(patched.body.metadata.finalizers, ['b.dev/y']);
      const replaced = await bench.api.patch(
        path,
        { metadata: { labels: { $patch: 'replace', d: '4' } } },
        'strategic',
      );
      assert.deepEqual(replaced.body.metadata.labels, { d: '4' });
      await bench.api.patch(path, { metadata: { finalizers: null } });
      const name = bench.name('sa');
      const accounts = `${bench.core}/serviceaccounts`;
      await bench.api.post(accounts, { metadata: { name }, secrets: [{ name: 'a' }, { name: 'b' }] });
      const account = await bench.api.patch(
        `${accounts}/${name}`,
        {
          secrets: [{ name: 'a', $patch: 'delete' }, { name: 'c' }],
          '$setElementOrder/secrets': [{ name: 'b' }, { name: 'c' }],
        },
        'strategic',
      );
      assert.deepEqual(account.body.secrets, [{ name: 'b' }, { name: 'c' }], account.text);
    });

    test('secrets and config maps have keys of a certain form, and data that can be made immutable', async () => {
      await refused(
        `${bench.core}/secrets`,
        { metadata: { name: bench.name() }, data: { 'a b': 'ZA==' } },
        422,
        /data\[a b\]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '\.'/,
      );
      const garbage = { metadata: { name: bench.name() }, data: { a: '???' } };
      await refused(`${bench.core}/secrets`, garbage, 400, 'cannot be handled as a Secret');
      await refused(`${bench.core}/configmaps`, { metadata: { name: bench.name() }, data: { a: 1 } }, 400);
      const name = bench.name('fixed');
      await bench.api.post(`${bench.core}/configmaps`, { metadata: { name }, data: { a: 'b' }, immutable: true });
      const changed = await bench.api.patch(`${bench.core}/configmaps/${name}`, { data: { a: 'c' } });
      assert.equal(changed.status, 422);
      assert.match(changed.body.message, /data: Forbidden: field is immutable when `immutable` is set/);
      const secret = (await bench.api.post(`${bench.core}/secrets`, { metadata: { name }, type: 'my/type' })).body;
      const retyped = await bench.api.put(`${bench.core}/secrets/${name}`, { ...secret, type: 'other' });
      assert.equal(retyped.status, 422);
      assert.match(retyped.body.message, /type: Invalid value: "other": field is immutable/);
    });

    test('a lease keeps microseconds and refuses times without them', async () => {
      const spec = { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.123456Z' };
      const { status, body } = await bench.api.post(leases(), { metadata: { name: bench.name() }, spec });
      assert.equal(status, 201);
      assert.deepEqual(body.spec, spec);
      const short = { ...spec, renewTime: '2026-01-01T00:00:00.123Z' };
      await refused(leases(), { metadata: { name: bench.name() }, spec: short }, 400, 'cannot be handled as a Lease');
      await refused(
        leases(),
        { metadata: { name: bench.name() }, spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } },
        422,
        'spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
        'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0',
      );
    });

    test('a number that the integer type of its field does not hold is refused, at its end it is taken', async () => {
      const metadata = { name: bench.name() };
      const transitions = (leaseTransitions: number) => ({ metadata, spec: { leaseTransitions } });
      await refused(leases(), transitions(2 ** 31), 400, 'cannot be handled as a Lease', 'of type int32');
      await refused(leases(), transitions(-(2 ** 31) - 1), 400, 'cannot be handled as a Lease', 'of type int32');
      const { status, body } = await bench.api.post(leases(), transitions(2 ** 31 - 1));
      assert.deepEqual([status, body.spec.leaseTransitions], [201, 2 ** 31 - 1]);
      const ports = { containers: [{ ...main, ports: [{ containerPort: 2 ** 31 }] }] };
      await refused(`${bench.core}/pods`, pod(ports), 400, 'cannot be handled as a Pod', 'of type int32');
      const grace = { terminationGracePeriodSeconds: 2 ** 40 };
      assert.equal((await bench.api.post(`${bench.core}/pods`, pod(grace))).status, 201);
    });

    test('a claim is pending until something binds it, and keeps its spec', async () => {
      const claims = `${bench.core}/persistentvolumeclaims`;
      const spec = {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'nobody',
        resources: { requests: { storage: '1Gi' } },
      };
      const { status, body, text } = await bench.api.post(claims, { metadata: { name: bench.name('claim') }, spec });
      assert.equal(status, 201, text);
      assert.deepEqual(body.spec, { ...spec, volumeMode: 'Filesystem' });
      assert.equal(body.status.phase, 'Pending');
      const one = `${claims}/${body.metadata.name}`;
      const changed = await bench.api.put(one, { ...body, spec: { ...body.spec, storageClassName: 'other' } });
      assert.equal(changed.status, 422, changed.text);
      assert.match(changed.body.message, /spec is immutable after creation except resources\.requests/);
      assert.equal((await bench.api.post(claims, { metadata: { name: body.metadata.name }, spec })).status, 409);
      await refused(
        claims,
        { metadata: { name: bench.name('claim') }, spec: {} },
        422,
        'spec.accessModes: Required value',
        'spec.resources[storage]: Required value',
      );
      assert.equal((await bench.api.delete(one)).status, 200);
    });

    test('a network policy is given back as it was written, with protocols filled in, and refused where a peer is none', async () => {
      const policies = `/apis/networking.k8s.io/v1/namespaces/${bench.namespace}/networkpolicies`;
      const post = (spec: object) => bench.api.post(policies, { metadata: { name: bench.name('policy') }, spec });
      const podSelector = { matchLabels: { app: 'x' } };
      const policyTypes = ['Ingress', 'Egress'];
      const egress = [
        {
          to: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['169.254.169.254/32'] } }, { namespaceSelector: {} }],
          ports: [
            { port: 53, protocol: 'UDP' },
            { port: 80, endPort: 90, protocol: 'TCP' },
          ],
        },
        { to: [{ ipBlock: { cidr: '::/0', except: ['fd00:ec2::254/128'] } }] },
      ];
      for (const spec of [
        { podSelector, policyTypes },
        { podSelector, policyTypes, egress },
      ]) {
        const { status, body, text } = await post(spec);
        assert.equal(status, 201, text);
        assert.deepEqual(body.spec, spec);
        assert.equal(body.metadata.generation, 1);
      }
      const { body } = await post({ podSelector, egress: [{ ports: [{ port: 443 }] }] });
      assert.deepEqual(body.spec, { podSelector, policyTypes, egress: [{ ports: [{ port: 443, protocol: 'TCP' }] }] });
      const one = `${policies}/${body.metadata.name}`;
      const replaced = await bench.api.put(one, { ...body, spec: { podSelector, policyTypes } });
      assert.equal(replaced.body.spec.egress, undefined, replaced.text);
      assert.equal(replaced.body.metadata.generation, 2);
      assert.equal((await bench.api.put(one, body)).status, 409);
      const peer = (to: object) => ({
        metadata: { name: bench.name('policy') },
        spec: { podSelector, egress: [{ to: [to] }] },
      });
      const path = 'spec.egress[0].to[0]';
      await refused(policies, peer({}), 422, `${path}: Required value: must specify a peer`);
      await refused(
        policies,
        peer({ ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} }),
        422,
        `${path}: Forbidden: may not specify both ipBlock and another peer`,
      );
      await refused(policies, peer({ ipBlock: {} }), 422, `${path}.ipBlock.cidr: Required value`);
      await refused(
        policies,
        peer({ ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.0/8'] } }),
        422,
        `${path}.ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of \`cidr\``,
      );
    });

    test('a pod that names a runtime or a priority which does not exist is refused', async () => {
      const pods = `${bench.core}/pods`;
      await refused(
        pods,
        pod({ runtimeClassName: 'absent' }),
        403,
        /pods "pod-[^"]*" is forbidden: pod rejected: RuntimeClass "absent" not found/,
      );
      await refused(pods, pod({ priorityClassName: 'absent' }), 403, 'no PriorityClass with name absent was found');
    });

    test('an event belongs to the namespace of what it is about, and its times have whole seconds', async () => {
      const event = {
        metadata: { name: bench.name('event') },
        involvedObject: { kind: 'Widget', name: 'x', namespace: bench.namespace },
        reason: 'Tested',
        message: 'm',
        type: 'Normal',
        firstTimestamp: '2026-01-01T00:00:00.789Z',
        lastTimestamp: '2026-01-01T00:00:00Z',
        count: 1,
        source: { component: 'test' },
      };
      const { status, body, text } = await bench.api.post(`${bench.core}/events`, event);
      assert.equal(status, 201, text);
      assert.equal(body.firstTimestamp, '2026-01-01T00:00:00Z');
      assert.equal(body.eventTime, null);
      const query = encodeURIComponent('involvedObject.name=x,involvedObject.kind=Widget,reason=Tested,type=Normal');
      assert.equal((await bench.api.get(`${bench.core}/events?fieldSelector=${query}`)).body.items.length, 1);
      const elsewhere = { ...event, metadata: { name: bench.name() }, involvedObject: { namespace: 'default' } };
      const mismatch = 'does not match event.namespace';
      await refused(`${bench.core}/events`, elsewhere, 422, mismatch);
      const nowhere = { ...event, metadata: { name: bench.name() }, involvedObject: { kind: 'Node', name: 'n' } };
      await refused(`${bench.core}/events`, nowhere, 422, mismatch);
      await refused(
        `${bench.core}/events`,
        {
          metadata: { name: bench.name() },
          involvedObject: event.involvedObject,
          eventTime: '2026-01-01T00:00:00.000000Z',
        },
        422,
        'reportingComponent: Required value',
        'reportingInstance: Required value',
        'action: Required value',
        'reason: Required value',
      );
    });

    test('roles and bindings that say too little are refused', async () => {
      const roles = `${rbac}/namespaces/${bench.namespace}/roles`;
      const verbless = { metadata: { name: bench.name() }, rules: [{ apiGroups: [''], resources: ['pods'] }] };
      await refused(roles, verbless, 422, 'rules[0].verbs: Required value: verbs must contain at least one value');
      await refused(
        roles,
        { metadata: { name: bench.name() }, rules: [{ verbs: ['get'] }] },
        422,
        'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
        'rules[0].resources: Required value: resource rules must supply at least one resource',
      );
      const bindings = `${rbac}/namespaces/${bench.namespace}/rolebindings`;
      await refused(
        bindings,
        {
          metadata: { name: bench.name() },
          roleRef: { kind: 'Role' },
          subjects: [
            { kind: 'Robot', name: 'x' },
            { kind: 'ServiceAccount', name: 'y' },
          ],
        },
        422,
        'roleRef.name: Required value',
        'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
      );
      await refused(
        `${rbac}/clusterrolebindings`,
        {
          metadata: { name: `${bench.namespace}-${bench.name()}` },
          roleRef: { kind: 'ClusterRole', name: 'x' },
          subjects: [{ kind: 'ServiceAccount', name: 'y' }],
        },
        422,
        'subjects[0].namespace: Required value',
      );
    });
  });
}
