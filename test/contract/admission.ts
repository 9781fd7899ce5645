import assert from 'node:assert/strict';
import { beforeAll, beforeEach, describe, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { RawAnswer } from '../support/raw-api.ts';
import { type Connect, useBench } from './target.ts';

const registration = '/apis/admissionregistration.k8s.io/v1';
const policies = `${registration}/validatingadmissionpolicies`;
const bindings = `${registration}/validatingadmissionpolicybindings`;
const rbac = '/apis/rbac.authorization.k8s.io/v1';

const widgets = (operations: string[], resources = ['widgets']) => ({
  apiGroups: ['contract.berth.dev'],
  apiVersions: ['*'],
  operations,
  resources,
});

export function admissionContract(connect: Connect): void {
  describe('admission policies', () => {
    const bench = useBench(connect);

    /** Label of the objects of one test: policies of the tests before stay in force for a moment. */
    let own = { own: '' };
    beforeEach(() => {
      own = { own: bench.name('own') };
    });

    /** Puts a policy in force in the bench's namespace, for objects of the test; returns its name. */
    const put = async (spec: object, objectSelector: object = { matchLabels: own }): Promise<string> => {
      const name = `${bench.namespace}-${bench.name('policy')}`;
      const made = await bench.api.post(policies, { metadata: { name }, spec });
      assert.equal(made.status, 201, made.text);
      onTestFinished(async () => void (await bench.api.delete(`${policies}/${name}`)));
      const matchResources = {
        objectSelector,
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: [bench.namespace] }],
        },
      };
      const bound = await bench.api.post(bindings, {
        metadata: { name },
        spec: { policyName: name, validationActions: ['Deny'], matchResources },
      });
      assert.equal(bound.status, 201, bound.text);
      onTestFinished(async () => void (await bench.api.delete(`${bindings}/${name}`)));
      return name;
    };

    /** Resolves with the denial once there is one: the API server hears of a policy by a watch of its own. */
    const denied = (ask: () => Promise<RawAnswer>): Promise<RawAnswer> =>
      eventually(
        async () => {
          const answer = await ask();
          return /ValidatingAdmissionPolicy/.test(answer.body?.message) ? answer : undefined;
        },
        { what: 'the policy denies the request' },
      );
    const create = (fields: object = { spec: { size: 1 } }, metadata: object = {}, token?: string) =>
      bench.api.post(
        `${bench.widgets}?dryRun=All`,
        bench.widget(fields, { labels: own, ...metadata }),
        token ? { token } : {},
      );
    const make = (spec: object) => bench.make({ spec }, { name: bench.name(), labels: own });
    const messageOf = async (ask: () => Promise<RawAnswer>): Promise<string> =>
      (await denied(ask)).body.message.replace(/^.* denied request: /, '');

    test('a policy that does not hold refuses the request and names itself', async () => {
      const name = await put({
        matchConstraints: { resourceRules: [widgets(['CREATE'])] },
        validations: [
          { expression: 'object.spec.size < 10' },
          { expression: 'object.spec.size < 5', message: ' at most 4; make it smaller ' },
        ],
      });
      const big = { spec: { size: 7 } };
      const { status, body } = await denied(() => create(big, { name: 'big' }));
      assert.equal(status, 422);
      assert.equal(body.reason, 'Invalid');
      const told = `ValidatingAdmissionPolicy '${name}' with binding '${name}' denied request: at most 4; make it smaller`;
      assert.equal(body.message, `widgets.contract.berth.dev "big" is forbidden: ${told}`);
      assert.deepEqual(body.details, {
        name: 'big',
        group: 'contract.berth.dev',
        kind: 'widgets',
        causes: [{ message: told }],
      });
      assert.equal((await create({ spec: { size: 4 } })).status, 201);
      assert.equal(await messageOf(() => create({ spec: { size: 11 } })), 'failed expression: object.spec.size < 10');
    });

    test('a schema is checked before a policy, and a policy before the name', async () => {
      const made = await make({ size: 1 });
      await put({
        matchConstraints: { resourceRules: [widgets(['CREATE'])] },
        validations: [{ expression: 'false' }],
      });
      await denied(() => create());
      const invalid = await create({ spec: { size: 'big' } });
      assert.match(invalid.body.message, /must be of type integer/);
      const taken = await create(undefined, { name: made.metadata.name });
      assert.equal(taken.status, 422, taken.text);
    });

    test('the reason sets the status, and the message can be an expression', async () => {
      await put({
        matchConstraints: { resourceRules: [widgets(['CREATE'])] },
        validations: [
          {
            expression: "object.spec.?color.orValue('') != 'red'",
            reason: 'Forbidden',
            messageExpression: "'no ' + object.spec.color + ' for ' + request.userInfo.username",
          },
          {
            expression: 'object.spec.size != 3',
            messageExpression: "'two\\nlines'",
            message: 'three is too many',
          },
          {
            expression: 'object.spec.size != 4',
            messageExpression: "'not ' + object.spec.absent",
            message: 'not four',
          },
        ],
      });
      const { body: self } = await bench.api.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {});
      const { status, body } = await denied(() => create({ spec: { size: 1, color: 'red' } }));
      assert.equal(status, 403);
      assert.equal(body.reason, 'Forbidden');
      assert.match(body.message, new RegExp(`denied request: no red for ${self.status.userInfo.username}$`));
      assert.equal(await messageOf(() => create({ spec: { size: 3 } })), 'three is too many');
      assert.equal(await messageOf(() => create({ spec: { size: 4 } })), 'not four');
    });

    /** Tells what an expression sees, by a message. */
    const telling = (rule: object, expression: string) => ({
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: 'false', messageExpression: expression }],
    });

    test('an expression sees what is asked for', async () => {
      await put(
        telling(
          widgets(['CREATE']),
          "request.operation + ' ' + request.resource.group + '/' + request.resource.version + '/' + request.resource.resource + ' ' + request.kind.kind + ' ' + request.namespace + ' ' + (has(request.name) ? request.name : 'none') + (has(request.subResource) ? ' below' : '') + (request.dryRun ? ' dry' : '') + (oldObject == null ? ' new' : '') + ' ' + namespaceObject.metadata.name",
        ),
      );
      const { namespace } = bench;
      const start = `CREATE contract.berth.dev/v1/widgets Widget ${namespace}`;
      assert.equal(await messageOf(() => create(undefined, { name: 'one' })), `${start} one dry new ${namespace}`);
      const named = await messageOf(() => create(undefined, { name: undefined, generateName: 'made-' }));
      assert.match(named, /Widget \S+ made-\w+ dry new/);
    });

    test('an update shows both objects, however it is made, and its subresources only to rules that name them', async () => {
      const made = await make({ size: 1, color: 'red' });
      await put(
        telling(
          widgets(['UPDATE']),
          "request.operation + ' ' + request.name + ' from ' + (oldObject.spec.size == 1 ? 'one' : 'other') + ' to ' + (object.spec.size == 2 ? 'two' : 'other')",
        ),
      );
      const at = `${bench.at(made)}?dryRun=All`;
      const told = `UPDATE ${made.metadata.name} from one to two`;
      assert.equal(await messageOf(() => bench.api.patch(at, { spec: { size: 2 } })), told);
      assert.equal(await messageOf(() => bench.api.put(at, { ...made, spec: { size: 2 } })), told);
      const applied = bench.widget({ spec: { size: 2 } }, { name: made.metadata.name });
      assert.equal(await messageOf(() => bench.api.patch(`${at}&fieldManager=x&force=true`, applied, 'apply')), told);
      const status = `${bench.at(made)}/status?dryRun=All`;
      const running = await bench.api.patch(status, { status: { phase: 'Running' } });
      assert.equal(running.status, 200, running.text);
      await put(telling(widgets(['UPDATE'], ['widgets/status']), "request.subResource + ' ' + object.status.phase"));
      assert.equal(await messageOf(() => bench.api.patch(status, { status: { phase: 'Done' } })), 'status Done');
    });

    test('an apply that creates is a creation', async () => {
      await put(telling(widgets(['CREATE']), "request.operation + ' ' + request.name"));
      const name = bench.name('applied');
      const object = bench.widget({ spec: { size: 1 } }, { name, labels: own });
      const path = `${bench.widgets}/${name}?fieldManager=x&dryRun=All`;
      const told = await messageOf(() => bench.api.patch(path, object, 'apply'));
      assert.equal(told, `CREATE ${name}`);
    });

    test('a deletion shows the stored object, and each of a collection is judged alone', async () => {
      const kept = await make({ size: 7 });
      await make({ size: 1 });
      await put({
        matchConstraints: { resourceRules: [widgets(['DELETE'])] },
        validations: [
          {
            expression: 'oldObject.spec.size < 5',
            messageExpression:
              "request.operation + ' ' + (has(request.name) ? request.name : 'one of all') + (object == null ? ' without' : ' with') + ' an object'",
          },
        ],
      });
      const deletion = `DELETE ${kept.metadata.name} without an object`;
      assert.equal(await messageOf(() => bench.api.delete(bench.at(kept), { dryRun: ['All'] })), deletion);
      const all = `${bench.widgets}?labelSelector=own%3D${own.own}`;
      assert.equal(await messageOf(() => bench.api.delete(all)), 'DELETE one of all without an object');
      assert.equal((await bench.api.get(bench.at(kept))).status, 200);
      const small = await make({ size: 1 });
      const { status, text } = await bench.api.delete(bench.at(small));
      assert.equal(status, 200, text);
    });

    test('an attach is judged by the name of the pod and by its options', async () => {
      const spec = {
        matchConstraints: {
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['CONNECT'], resources: ['pods/attach'] },
          ],
        },
        validations: [
          {
            expression: "request.name.matches('^mine-')",
            reason: 'Forbidden',
            messageExpression:
              "request.operation + ' ' + request.name + ' ' + request.resource.resource + '/' + request.subResource + ' ' + object.kind + ' ' + object.container + (oldObject == null ? ' new' : '')",
          },
        ],
      };
      // Options have no labels to be selected by.
      await put(spec, {});
      const attach = (name: string) => bench.api.get(`${bench.core}/pods/${name}/attach?container=main&stdin=true`);
      const told = 'CONNECT other-1 pods/attach PodAttachOptions main new';
      assert.equal(await messageOf(() => attach('other-1')), told);
      assert.equal((await attach('other-1')).status, 403);
      assert.equal((await attach('mine-1')).status, 404);
    });

    test('an expression asks for rights of the user who makes the request, also for verbs that no request has', async () => {
      const account = bench.name('author');
      const accounts = `${bench.core}/serviceaccounts`;
      await bench.api.post(accounts, { metadata: { name: account } });
      const { token } = (await bench.api.post(`${accounts}/${account}/token`, { spec: {} })).body.status;
      const roles = `${rbac}/namespaces/${bench.namespace}/roles`;
      const rule = (...verbs: string[]) => ({ apiGroups: ['contract.berth.dev'], resources: ['widgets'], verbs });
      const role = { metadata: { name: account }, rules: [rule('create')] };
      assert.equal((await bench.api.post(roles, role)).status, 201);
      await bench.api.post(`${rbac}/namespaces/${bench.namespace}/rolebindings`, {
        metadata: { name: account },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account },
        subjects: [{ kind: 'ServiceAccount', name: account, namespace: bench.namespace }],
      });
      await put({
        matchConstraints: { resourceRules: [widgets(['CREATE'])] },
        validations: [
          {
            expression:
              "!has(object.spec.label) || object.spec.label == request.userInfo.username || authorizer.group('contract.berth.dev').resource('widgets').namespace(request.namespace).check('setlabel').allowed()",
            message: 'the label is not yours',
          },
        ],
      });
      const labelled = { spec: { size: 1, label: 'some' } };
      await eventually(async () => (await create(undefined, {}, token)).status === 201, {
        what: 'the author may create widgets',
      });
      assert.equal(await messageOf(() => create(labelled, {}, token)), 'the label is not yours');
      const all = await create(labelled);
      assert.equal(all.status, 201, all.text);
      const granted = await bench.api.put(`${roles}/${account}`, { ...role, rules: [rule('create', 'setlabel')] });
      assert.equal(granted.status, 200, granted.text);
      await eventually(async () => (await create(labelled, {}, token)).status === 201, {
        what: 'the verb lets the author set the label',
      });
    });

    test('a policy counts only where all its match conditions hold', async () => {
      await put({
        matchConstraints: { resourceRules: [widgets(['CREATE'])] },
        matchConditions: [
          { name: 'red', expression: "object.spec.?color.orValue('') == 'red'" },
          { name: 'big', expression: 'object.spec.size > 5' },
        ],
        validations: [{ expression: 'false' }],
      });
      await denied(() => create({ spec: { size: 7, color: 'red' } }));
      assert.equal((await create({ spec: { size: 1, color: 'red' } })).status, 201);
      assert.equal((await create({ spec: { size: 7 } })).status, 201);
    });

    test('variables are computed when they are asked for, from those before them', async () => {
      await put({
        matchConstraints: { resourceRules: [widgets(['CREATE'])] },
        variables: [
          { name: 'size', expression: 'object.spec.size' },
          { name: 'small', expression: 'variables.size < 5' },
          { name: 'twice', expression: 'variables.size * 2' },
          { name: 'broken', expression: 'object.spec.absent' },
        ],
        validations: [
          { expression: 'variables.small || variables.broken == 1', message: 'too big' },
          { expression: 'variables.small' },
          { expression: 'variables.twice != 6', messageExpression: "variables.twice == 6 ? 'six' : 'other'" },
        ],
      });
      assert.equal(await messageOf(() => create({ spec: { size: 3 } })), 'six');
      assert.equal((await create({ spec: { size: 2 } })).status, 201);
      assert.match(await messageOf(() => create({ spec: { size: 9 } })), /no such key: absent/i);
    });

    test('an expression that cannot be evaluated refuses the request, unless the policy ignores failures', async () => {
      const spec = (failurePolicy: string) => ({
        failurePolicy,
        matchConstraints: { resourceRules: [widgets(['CREATE'])] },
        validations: [{ expression: 'object.spec.note.size() > 1' }, { expression: 'object.spec.size < 5' }],
      });
      const name = await put(spec('Ignore'));
      assert.equal(await messageOf(() => create({ spec: { size: 9 } })), 'failed expression: object.spec.size < 5');
      assert.equal((await create()).status, 201);
      const current = (await bench.api.get(`${policies}/${name}`)).body;
      const changed = await bench.api.put(`${policies}/${name}`, { ...current, spec: spec('Fail') });
      assert.equal(changed.status, 200, changed.text);
      assert.equal(changed.body.metadata.generation, 2);
      const { status, body } = await denied(() => create());
      assert.equal(status, 422);
      assert.match(
        body.message,
        /denied request: expression 'object\.spec\.note\.size\(\) > 1' resulted in error: .*no such key: note/i,
      );
    });

    test('owner references and labels can be absent, and are read so', async () => {
      await put({
        matchConstraints: { resourceRules: [widgets(['CREATE'])] },
        validations: [
          {
            expression:
              "object.metadata.?ownerReferences.orValue([]).all(o, !o.?controller.orValue(false) || (o.kind == 'Box' && object.metadata.name.matches('^w-' + o.uid + '-[0-9]+$'))) && object.metadata.?labels[?'a.dev/b'].orValue('none') != 'no'",
            message: 'not of a box',
          },
        ],
      });
      const owner = { apiVersion: 'x.dev/v1', kind: 'Box', name: 'box', uid: 'u1' };
      const owned = (fields: object, name: string) => () =>
        create(undefined, { name, ownerReferences: [{ ...owner, ...fields }] });
      assert.equal(await messageOf(owned({ controller: true }, 'w-u2-1')), 'not of a box');
      assert.equal(await messageOf(owned({ controller: true, kind: 'Bag' }, 'w-u1-1')), 'not of a box');
      assert.equal(await messageOf(() => create(undefined, { labels: { ...own, 'a.dev/b': 'no' } })), 'not of a box');
      for (const ask of [owned({ controller: true }, 'w-u1-12'), owned({}, 'w-u2-1'), create]) {
        const { status, text } = await ask();
        assert.equal(status, 201, text);
      }
    });

    test('a policy counts only in the namespaces that its binding selects, and not at all without one', async () => {
      const name = await put({
        matchConstraints: { resourceRules: [widgets(['CREATE'])] },
        validations: [{ expression: 'false' }],
      });
      await denied(() => create());
      const elsewhere = { matchExpressions: null, matchLabels: { 'kubernetes.io/metadata.name': 'elsewhere' } };
      const narrowed = await bench.api.patch(`${bindings}/${name}`, {
        spec: { matchResources: { namespaceSelector: elsewhere } },
      });
      assert.equal(narrowed.status, 200, narrowed.text);
      await eventually(async () => (await create()).status === 201, { what: 'the namespace is not selected' });
      const here = { matchLabels: { 'kubernetes.io/metadata.name': bench.namespace } };
      await bench.api.patch(`${bindings}/${name}`, { spec: { matchResources: { namespaceSelector: here } } });
      await denied(() => create());
      await bench.api.delete(`${bindings}/${name}`);
      await eventually(async () => (await create()).status === 201, { what: 'the policy is not bound' });
    });

    test('what a policy leaves out is filled in', async () => {
      const name = await put({
        matchConstraints: { resourceRules: [widgets(['DELETE'])] },
        validations: [{ expression: 'true' }],
      });
      const { body } = await bench.api.get(`${policies}/${name}`);
      assert.equal(body.metadata.generation, 1);
      assert.deepEqual(body.spec, {
        failurePolicy: 'Fail',
        matchConstraints: {
          matchPolicy: 'Equivalent',
          namespaceSelector: {},
          objectSelector: {},
          resourceRules: [{ ...widgets(['DELETE']), scope: '*' }],
        },
        validations: [{ expression: 'true' }],
      });
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
      const shown = async (path: string) => {
        const { columnDefinitions, rows } = (await bench.api.get(`${path}/${name}`, { accept })).body;
        return [columnDefinitions.map((column: { name: string }) => column.name), rows[0].cells.slice(0, 3)];
      };
      const head = ['Name', 'Validations', 'ParamKind', 'Age'];
      assert.deepEqual(await shown(policies), [head, [name, 1, '<unset>']]);
      const boundHead = ['Name', 'PolicyName', 'ParamRef', 'Age'];
      assert.deepEqual(await shown(bindings), [boundHead, [name, name, '<unset>']]);
    });

    describe('that are wrong', () => {
      let name = '';
      beforeAll(() => {
        name = `${bench.namespace}-wrong`;
      });
      const matchConstraints = { resourceRules: [widgets(['CREATE'])] };
      const wrong: [string, object, RegExp][] = [
        [
          'an expression that cannot be compiled',
          { matchConstraints, validations: [{ expression: 'object.spec ==' }] },
          /spec\.validations\[0\]\.expression: Invalid value: .*compilation failed/s,
        ],
        [
          'an expression of another type',
          { matchConstraints, validations: [{ expression: "'text'" }] },
          /spec\.validations\[0\]\.expression: Invalid value: "'text'": must evaluate to bool/,
        ],
        [
          'an expression of an unknown type',
          { matchConstraints, validations: [{ expression: 'object.spec.enabled' }] },
          /spec\.validations\[0\]\.expression: Invalid value: "object\.spec\.enabled": must evaluate to bool but got dyn/,
        ],
        [
          'a right that is asked for in a message',
          {
            matchConstraints,
            validations: [
              { expression: 'true', messageExpression: "authorizer.group('').resource('pods').check('get').reason()" },
            ],
          },
          /spec\.validations\[0\]\.messageExpression: Invalid value: .*compilation failed/s,
        ],
        [
          'variables in a match condition',
          {
            matchConstraints,
            matchConditions: [{ name: 'a', expression: 'variables.a' }],
            variables: [{ name: 'a', expression: 'true' }],
            validations: [{ expression: 'true' }],
          },
          /spec\.matchConditions\[0\]\.expression: Invalid value: .*compilation failed/s,
        ],
        ['no validations', { matchConstraints }, /spec\.validations: Required value: validations or auditAnnotations/],
        ['no rules', { validations: [{ expression: 'true' }] }, /spec\.matchConstraints: Required value/],
        [
          'a reason that is none',
          { matchConstraints, validations: [{ expression: 'true', reason: 'Whim' }] },
          /spec\.validations\[0\]\.reason: Unsupported value: "Whim": supported values: "Forbidden", "Invalid"/,
        ],
        [
          'an operation that is none',
          { matchConstraints: { resourceRules: [widgets(['PATCH'])] }, validations: [{ expression: 'true' }] },
          /resourceRules\[0\]\.operations\[0\]: Unsupported value: "PATCH"/,
        ],
      ];
      for (const [what, spec, message] of wrong) {
        test(`a policy with ${what} is 422`, async () => {
          const { status, body } = await bench.api.post(`${policies}?dryRun=All`, { metadata: { name }, spec });
          assert.equal(status, 422);
          assert.match(body.message, message);
        });
      }

      test('a binding without a policy or an action is 422', async () => {
        const { status, body } = await bench.api.post(`${bindings}?dryRun=All`, { metadata: { name }, spec: {} });
        assert.equal(status, 422);
        assert.match(body.message, /spec\.policyName: Required value/);
        assert.match(body.message, /spec\.validationActions: Required value: at least one validation action/);
      });
    });
  });
}
