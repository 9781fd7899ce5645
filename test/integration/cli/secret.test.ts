import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Pod } from '../../../core/kube/builtin.ts';
import { pods, secrets, serviceAccounts } from '../../../core/kube/resources.ts';
import { type SessionClass, sessionclasses, sessions } from '../../../core/resources/kinds.ts';
import type { SessionSpec } from '../../../core/resources/session.ts';
import { eventually } from '../../support/eventually.ts';
import { ActedCluster, condition } from './acted.ts';

const NAMESPACE = 'default';
const ref = (name: string) => ({ valueFrom: { secretKeyRef: { name, key: 'key' } } });
const fromSecret = (variable: string, name = 'model') => ({
  agent: { command: ['true'], env: [{ name: variable, ...ref(name) }] },
});

describe('the sessions that use a Secret', () => {
  let cluster: ActedCluster;
  const create = (name: string, spec: object) =>
    cluster.server.store.create(sessionclasses, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SessionClass',
      metadata: { name },
      spec,
    } as SessionClass);
  const pod = (name: string, env: object[], labels: Record<string, string>) =>
    cluster.server.store.create(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: NAMESPACE, name, labels },
      spec: { containers: [{ name: 'session', image: 'i', env }] },
    } as Pod);
  const session = async (name: string, spec: object, podName?: string) => {
    const { metadata } = await cluster.session(name, spec as Partial<SessionSpec>);
    if (podName === undefined) return;
    const ready = condition('Ready', 'True', 'Ready');
    await cluster.say(name, { phase: 'Ready', incarnation: 1, podName, conditions: [ready] });
    await pod(podName, [{ name: 'BERTH_SECRET_0', ...ref('model') }], { 'berth.dev/session-uid': metadata.uid });
  };

  beforeAll(async () => {
    cluster = await ActedCluster.start();
    const account = { namespace: NAMESPACE, name: 'default' };
    await eventually(() => cluster.server.store.get(serviceAccounts, account), { what: 'pods can be created' });
    await create('coding', fromSecret('API_KEY'));
    await create('pulling', { agent: { command: ['true'] }, imagePullSecrets: [{ name: 'model' }] });
    await create('building', { environments: { credentials: { name: 'model' } }, agent: { command: ['true'] } });
    await session('old-own', { ...fromSecret('KEY') }, 'pod-old-own');
    await session('old-class', { class: 'coding', agent: { args: ['x'] } }, 'pod-old-class');
    await session('old-pod', { class: 'default' }, 'pod-old-pod');
    await session('rests', { class: 'pulling' });
    await cluster.server.store.create(sessions, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Session',
      metadata: { namespace: NAMESPACE, name: 'builds' },
      spec: { class: 'building', build: 'Environment' } as SessionSpec,
    });
    await session('replaces', { class: 'coding', ...fromSecret('API_KEY', 'another') });
    await session('uses-none', { class: 'building' });
    await pod('p-1', [{ name: 'K', ...ref('model') }], { 'berth.dev/session-uid': '', 'berth.dev/pool': 'warm' });
    const { metadata } = await cluster.server.store.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: NAMESPACE, name: 'model' },
    });
    // Times of objects are whole seconds.
    const changed = Date.parse(metadata.creationTimestamp);
    await eventually(() => Date.now() >= changed + 1000, { what: 'the second of the change is over' });
    await session('new', { ...fromSecret('KEY') }, 'pod-new');
  });
  afterAll(() => cluster.close());

  test('are found by their own fields, those of their class that count, and their pods, with the age of each pod', async () => {
    const { code, stdout, stderr } = await cluster.berth('secret', 'model', '-o', 'json');
    assert.equal(code, 0, stderr);
    const { uses } = JSON.parse(stdout) as { uses: { kind: string; name: string; by: string[]; pod: string }[] };
    const found = uses.map(({ kind, name, by, pod }) => [
      kind === 'Session' ? name : `${kind} ${name}`,
      pod,
      by.join(),
    ]);
    assert.deepEqual(
      found.toSorted(([a = ''], [b = '']) => a.localeCompare(b)),
      [
        ['builds', 'None', 'class building: environments.credentials'],
        ['new', 'After', 'spec.agent.env[KEY]'],
        ['old-class', 'Before', 'class coding: agent.env[API_KEY]'],
        ['old-own', 'Before', 'spec.agent.env[KEY]'],
        ['old-pod', 'Before', 'its pod'],
        ['rests', 'None', 'class pulling: imagePullSecrets'],
        ['SessionPool warm', 'Before', 'its pods'],
      ],
    );
  });

  test('are shown as a table with the time of the last change, and by name', async () => {
    const shown = await cluster.berth('secret', 'model', '-A');
    assert.match(
      shown.stdout,
      /^NAMESPACE +NAME +POD +USED BY\n(.*\n)*default +old-own +before the change +spec\.agent/,
    );
    assert.match(shown.stderr, /^Secret default\/model was changed last at 20\S+Z\n$/);
    const named = await cluster.berth('secret', 'model', '-o', 'name');
    assert.match(named.stdout, /^session\.berth\.dev\/rests$/m);
    assert.match(named.stdout, /^sessionpool\.berth\.dev\/warm$/m);
    const none = await cluster.berth('secret', 'nothing');
    assert.deepEqual([none.code, none.stdout], [0, '']);
    assert.match(
      none.stderr,
      /there is no Secret default\/nothing\nno session and no pool of namespace default uses the/,
    );
  });

  test('are restarted by berth restart --uses-secret where their pod is from before the change', async () => {
    const { code, stdout, stderr } = await cluster.berth(
      'restart',
      '--uses-secret',
      'model',
      '--dry-run',
      '-o',
      'name',
    );
    assert.equal(code, 0, stderr);
    assert.deepEqual(stdout.trim().split('\n').toSorted(), [
      'session.berth.dev/old-class',
      'session.berth.dev/old-own',
      'session.berth.dev/old-pod',
    ]);
    assert.match(
      stderr,
      /SessionPool default\/warm keeps pods from before the change; to replace them: kubectl delete pods/,
    );
  });
});
