import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { isNotFound } from '../../../core/kube/errors.ts';
import { namespaces, networkPolicies, pods } from '../../../core/kube/resources.ts';
import type { Resource } from '../../../core/kube/types.ts';
import { sessionclasses } from '../../../core/resources/kinds.ts';
import { networkPolicyName } from '../../../core/resources/names.ts';
import { eventually } from '../../support/eventually.ts';
import { Installation, ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const ECHO = pythonAgent(`answer({name: value for name, value in os.environ.items() if 'proxy' in name.lower()})`);
const overrides = ['agent.command'] as const;

describe('the network policy of a class', () => {
  let cluster: Installation;
  /** Name → resource version with which it was made; every version of the server is of one order. */
  const made = new Map<string, number>();
  const stopped = new AbortController();
  let broken: unknown;
  const follow = async (resource: Resource, resourceVersion: string) => {
    const from = { namespace: 'default', resourceVersion, signal: stopped.signal };
    for await (const event of cluster.client.watch(resource, from)) {
      if (event.type !== 'ADDED') continue;
      made.set(event.object.metadata.name, Number(event.object.metadata.resourceVersion));
    }
  };
  beforeAll(async () => {
    cluster = await Installation.start({ ...ONE_LEADER, BERTH_GARBAGE_INTERVAL: '100ms' });
    for (const resource of [pods, networkPolicies] as Resource[]) {
      const { metadata } = await cluster.client.list(resource, { namespace: 'default' });
      follow(resource, metadata.resourceVersion).catch((error) => {
        if (!stopped.signal.aborted) broken = error;
      });
    }
    cluster.startController();
  });
  afterAll(() => {
    stopped.abort();
    return cluster.stop();
  });

  const classOf = (name: string, network?: object, more: object = {}) =>
    cluster.createClass(name, {
      overrides: [...overrides],
      ...(network ? { sandbox: { network } } : {}),
      ...more,
    } as never);
  const policyOf = (name: string) =>
    cluster.client.get(networkPolicies, { namespace: 'default', name: networkPolicyName(name) });
  const policyUntil = (name: string, what: string, check: (spec: Awaited<ReturnType<typeof policyOf>>) => boolean) =>
    eventually(
      async () => {
        const policy = await policyOf(name).catch((error) => {
          if (isNotFound(error)) return undefined;
          throw error;
        });
        return policy && check(policy) ? policy : undefined;
      },
      { what: `policy of ${name} ${what}` },
    );
  const run = async (name: string, of: string) => {
    await cluster.create(name, { class: of, agent: ECHO, input: null });
    return cluster.ended(name);
  };

  test('is created before the first pod of the class, and once for all its pods', async () => {
    await classOf('closed');
    assert.equal((await run('closed-1', 'closed')).status?.phase, 'Succeeded');
    assert.equal((await run('closed-2', 'closed')).status?.phase, 'Succeeded');
    const policy = await policyOf('closed');
    assert.deepEqual(policy.spec, {
      podSelector: { matchLabels: { 'berth.dev/network': 'closed' } },
      policyTypes: ['Ingress', 'Egress'],
    });
    const own = (await cluster.podsOf('closed-1')).concat(await cluster.podsOf('closed-2'));
    assert.equal(own.length, 2);
    for (const { metadata } of own) assert.equal(metadata.labels?.['berth.dev/network'], 'closed');
    const areSeen = () => {
      if (broken) throw broken;
      return [policy, ...own].every(({ metadata }) => made.has(metadata.name));
    };
    await eventually(areSeen, { what: 'all are seen' });
    const [before, ...after] = [policy, ...own].map(({ metadata }) => made.get(metadata.name) as number);
    for (const pod of after) assert.ok((before as number) < pod, `${before} is before ${pod}`);
    assert.equal(Number(policy.metadata.resourceVersion), before, 'it was written once');
  });

  test('is required: no pod is created while the policy cannot be written', async () => {
    await classOf('refused');
    const match = (request: { method: string; resource?: string }) =>
      request.method === 'POST' && request.resource === 'networkpolicies';
    const message = 'networkpolicies is forbidden: not here';
    cluster.server.faults.failNext(match, { status: 'Failure', code: 403, reason: 'Forbidden', message } as never, 1);
    const { status } = await run('refused', 'refused');
    assert.equal(status?.error?.code, 'PodForbidden');
    assert.match(status?.error?.message ?? '', /NetworkPolicy berth-refused: .*not here/);
    assert.deepEqual(await cluster.podsOf('refused'), []);
  });

  test('does not replace a policy that Berth did not make', async () => {
    await classOf('taken');
    const metadata = { name: 'berth-taken', namespace: 'default' };
    const spec = { podSelector: { matchLabels: { app: 'mine' } }, policyTypes: ['Ingress' as const] };
    await cluster.client.create(networkPolicies, { metadata, spec });
    const { status } = await run('taken', 'taken');
    assert.equal(status?.error?.code, 'PodForbidden');
    assert.match(status?.error?.message ?? '', /"berth-taken" exists in namespace "default" and was not made by Berth/);
    assert.deepEqual((await policyOf('taken')).spec, spec);
    assert.deepEqual(await cluster.podsOf('taken'), []);
  });

  test('is restored after it is changed or deleted', async () => {
    await classOf('guarded');
    await run('guarded', 'guarded');
    const ref = { namespace: 'default', name: 'berth-guarded' };
    const { metadata } = await policyOf('guarded');
    await cluster.client.patch(networkPolicies, ref, { spec: { egress: [{}] } });
    await policyUntil('guarded', 'mended', ({ spec }) => spec.egress === undefined);
    await cluster.client.delete(networkPolicies, ref);
    const again = await policyUntil('guarded', 'there again', (policy) => policy.metadata.uid !== metadata.uid);
    assert.deepEqual(again.spec.policyTypes, ['Ingress', 'Egress']);
  });

  test('stays in force for pods whose class is gone, and goes some time after the last session', async () => {
    const removed = (name: string) =>
      eventually(() => policyOf(name).then(() => false, isNotFound), {
        what: `the policy of ${name} is removed`,
      });
    for (const name of ['passing', 'beside']) {
      await classOf(name);
      await run(name, name);
    }
    const { metadata } = await policyOf('passing');
    await cluster.client.delete(sessionclasses, { name: 'passing' });
    // Policies are reconciled one after the other. An unused policy is deleted in the second round.
    await cluster.delete('beside');
    await removed('beside');
    assert.equal((await policyOf('passing')).metadata.uid, metadata.uid);
    await cluster.delete('passing');
    await removed('passing');
    await classOf('passing');
    assert.equal((await run('passing-2', 'passing')).status?.phase, 'Succeeded');
    assert.notEqual((await policyOf('passing')).metadata.uid, metadata.uid);
  });

  test('allows a proxy, which the agent’s environment names', async () => {
    await classOf('proxied', {
      mode: 'AllowList',
      dns: false,
      proxy: { url: 'http://10.0.0.5:3128', noProxy: ['.svc'] },
    });
    const turn = await run('proxied', 'proxied');
    const seen = await cluster.output<Record<string, string>>(turn);
    assert.equal(seen.https_proxy, 'http://10.0.0.5:3128');
    assert.equal(seen.HTTP_PROXY, 'http://10.0.0.5:3128');
    assert.equal(seen.NO_PROXY, 'localhost,127.0.0.1,::1,.svc');
    assert.deepEqual((await policyOf('proxied')).spec.egress, [
      { to: [{ ipBlock: { cidr: '10.0.0.5/32' } }], ports: [{ port: 3128, protocol: 'TCP' }] },
    ]);
  });

  test('is the same for a class whose name is longer than a label', async () => {
    const name = `${'a'.repeat(60)}.${'b'.repeat(60)}`;
    await classOf(name);
    assert.equal((await run('long', name)).status?.phase, 'Succeeded');
    const [pod] = await cluster.podsOf('long');
    const { matchLabels } = (await policyOf(name)).spec.podSelector;
    assert.equal(matchLabels?.['berth.dev/network'], pod?.metadata.labels?.['berth.dev/network']);
  });
});

describe('a class with pod settings', () => {
  const cluster = installed(ONE_LEADER, { controller: true });

  test('is refused with its field where it contradicts itself', async () => {
    const refused = (spec: object, message: RegExp) =>
      assert.rejects(cluster.createClass('wrong', spec as never), message, JSON.stringify(spec));
    const network = (fields: object, message: RegExp) => refused({ sandbox: { network: fields } }, message);
    await network({ allow: [{ cidr: '10.0.0.0/8' }] }, /network\.allow: .*needs mode AllowList/);
    await network({ mode: 'Open', dns: false }, /network\.dns: .*needs mode AllowList/);
    await network({ proxy: { url: 'http://10.0.0.5' } }, /network\.proxy: .*needs mode AllowList, or Open/);
    const list = (entry: object, message: RegExp) => network({ mode: 'AllowList', allow: [entry] }, message);
    await list({}, /say where to/);
    await list({ ports: [{ port: 443 }] }, /say where to/);
    await list({ cidr: '10.0.0.0/8', podSelector: {} }, /set either cidr or selectors/);
    await list({ podSelector: {}, except: ['10.0.0.0/8'] }, /needs a cidr/);
    await list({ cidr: 'example.com' }, /allow\[0\]\.cidr/);
    await list({ cidr: '10.0.0.256/8' }, /allow\[0\]\.cidr/);
    await list({ cidr: '10.0.0.0' }, /allow\[0\]\.cidr/);
    await list({ cidr: '10.0.0.0/8', ports: [{ port: 9, endPort: 8 }] }, /must not be lower than port/);
    const proxy = (fields: object, message: RegExp) => network({ mode: 'AllowList', proxy: fields }, message);
    await proxy({ url: 'http://proxy.egress.svc:3128' }, /network\.proxy: .*knows addresses and pods, not names/);
    await proxy({ url: 'http://user:secret@10.0.0.5' }, /proxy\.url/);
    await refused({ podMetadata: { labels: { 'berth.dev/session': 'x' } } }, /podMetadata\.labels: .*Berth’s own/);
    await refused({ podMetadata: { labels: { 'app.kubernetes.io/managed-by': 'x' } } }, /Berth’s own/);
    await refused(
      { podMetadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/session': 'unconfined' } } },
      /podMetadata\.annotations: .*AppArmor or seccomp profile/,
    );
    await cluster.createClass('right', {
      podMetadata: { labels: { 'app.kubernetes.io/part-of': 'x' } },
      affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
      sandbox: {
        network: {
          mode: 'AllowList',
          allow: [{ cidr: 'fd00::/8' }, { namespaceSelector: {} }],
          proxy: { url: 'http://proxy:1', podSelector: {} },
        },
      },
    } as never);
    await cluster.createClass('open', {
      sandbox: { network: { mode: 'Open', proxy: { url: 'http://proxy:1' } } },
    } as never);
  });

  test('applies an edit of its network at once, also to running pods', async () => {
    const sandbox = (mode: string) => ({ sandbox: { network: { mode } } });
    await cluster.createClass('edited', { overrides: [...overrides], ...sandbox('Open') } as never);
    await cluster.create('edited', { class: 'edited', agent: ECHO, input: null });
    await cluster.ended('edited');
    const [pod] = await cluster.podsOf('edited');
    const policy = () => cluster.client.get(networkPolicies, { namespace: 'default', name: 'berth-edited' });
    assert.equal((await policy()).spec.egress?.length, 2);
    await cluster.client.patch(sessionclasses, { name: 'edited' }, { spec: sandbox('None') });
    await eventually(async () => (await policy()).spec.egress === undefined, { what: 'closed' });
    const [same] = await cluster.podsOf('edited');
    assert.equal(same?.metadata.uid, pod?.metadata.uid);
  });

  test('has its settings on the pod, and the default of its network is none', async () => {
    const podMetadata = { labels: { team: 'a' }, annotations: { 'example.com/cost': 'b' } };
    const affinity = { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } };
    const tolerations = [{ key: 'agents', operator: 'Exists' as const }];
    const sandbox = { network: {}, readOnlyRootFilesystem: false };
    await cluster.createClass('marked', {
      overrides: [...overrides],
      podMetadata,
      affinity,
      tolerations,
      sandbox,
    } as never);
    const { spec } = await cluster.client.get(sessionclasses, { name: 'marked' });
    assert.equal(spec.sandbox?.network?.mode, 'None');
    await cluster.create('marked', { class: 'marked', agent: ECHO, input: null });
    await cluster.ended('marked');
    const [pod] = await cluster.podsOf('marked');
    assert.equal(pod?.metadata.labels?.team, 'a');
    assert.equal(pod?.metadata.annotations?.['example.com/cost'], 'b');
    assert.deepEqual(pod?.spec.affinity, affinity);
    assert.ok(pod?.spec.tolerations?.some((one) => (one as { key?: string }).key === 'agents'));
    assert.equal(
      (pod?.spec.containers[0]?.securityContext as { readOnlyRootFilesystem?: boolean } | undefined)
        ?.readOnlyRootFilesystem,
      false,
    );
  });

  test('names a runtime or a priority that must exist, else its turns end with what the API server says', async () => {
    const table = {
      runtimeClassName: /RuntimeClass "absent" not found/,
      priorityClassName: /no PriorityClass with name absent/,
    };
    for (const [field, message] of Object.entries(table)) {
      const name = field.toLowerCase();
      await cluster.createClass(name, { overrides: [...overrides], [field]: 'absent' } as never);
      await cluster.create(name, { class: name, agent: ECHO, input: null });
      const { status } = await cluster.ended(name);
      assert.equal(status?.error?.code, 'PodForbidden');
      assert.match(status?.error?.message ?? '', message);
    }
  });

  test('is limited to some namespaces: sessions elsewhere say so, and start when their namespace is labelled', async () => {
    await cluster.createClass('chosen', {
      overrides: [...overrides],
      namespaceSelector: { matchLabels: { agents: 'yes' } },
    } as never);
    await cluster.create('chosen', { class: 'chosen', agent: ECHO });
    const waiting = await cluster.until('chosen', 'refused', ({ status }) =>
      Boolean(status?.conditions?.some(({ type, reason }) => type === 'Admitted' && reason === 'NotAllowed')),
    );
    assert.match(JSON.stringify(waiting.status?.conditions), /the class is not for namespace \\"default\\"/);
    assert.deepEqual(await cluster.podsOf('chosen'), []);
    await cluster.client.patch(namespaces, { name: 'default' }, { metadata: { labels: { agents: 'yes' } } });
    await cluster.until('chosen', 'ready', ({ status }) => status?.phase === 'Ready');
    const { items } = await cluster.client.list(pods, { namespace: 'default' });
    assert.ok(items.some(({ metadata }) => metadata.labels?.['berth.dev/session'] === 'chosen'));
  });
});
