import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { blobs, environments, type StoredEnvironment, sessions } from '../../../core/resources/kinds.ts';
import { uvProgram } from '../../../images/uv.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { PackageIndex } from '../../support/package-index.ts';

/** Incompressible text, so that an archive with it is stored as Blobs. */
const BULK = randomBytes(48 * 1024).toString('base64');
const SHOUT = {
  name: 'shout',
  version: '1.2',
  files: { 'shout.py': 'def loud(text):\n    return text.upper()\n', 'bulk.txt': BULK },
};
const GREETING = {
  name: 'greeting',
  version: '1.0',
  files: { 'greeting/__init__.py': 'from shout import loud\n\ndef hello():\n    print(loud("hello"), end="")\n' },
  requires: ['shout>=1'],
  scripts: { greet: 'greeting:hello' },
};
const named = (status: StoredEnvironment['status']) =>
  status?.packages?.map(({ name, version }) => `${name} ${version}`);
const agent = { command: ['greet'], input: 'Text' as const, result: 'Text' as const };

describe('Python environments', () => {
  const cluster = installed(ONE_LEADER);
  let index: PackageIndex;
  let env: Record<string, string>;
  let controller: ReturnType<typeof cluster.startController>;
  beforeAll(async () => {
    index = (await PackageIndex.start()).add(SHOUT, GREETING);
    env = { BERTH_UV: await uvProgram() };
    controller = cluster.startController(env);
    const overrides = ['agent.command', 'agent.input', 'agent.result', 'environment'] as const;
    await cluster.createClass('indexed', { overrides: [...overrides], environments: { index: index.url } });
  });
  afterAll(() => index.close());

  const create = (name: string, requirements: string[]) =>
    cluster.client.create(environments, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Environment',
      metadata: { name, namespace: 'default' },
      spec: { class: 'indexed', requirements },
    } as unknown as StoredEnvironment);
  const environment = (name: string) => cluster.client.get(environments, { namespace: 'default', name });
  const until = (name: string, phase: string) =>
    eventually(
      async () => {
        const found = await environment(name);
        return found.status?.phase === phase ? found : undefined;
      },
      { what: `environment ${name} ${phase}` },
    );

  test.for([
    ['-e .'],
    ['--find-links /tmp'],
    ['file:///etc/passwd'],
    ['git+https://example.com/x.git'],
    ['pkg==$' + '{HOME}'],
    ['httpx\n-r /etc/hostname'],
    ['pkg; os_name == "posix" --index-url x'],
  ])('is refused by the API server with the requirement %j', async ([requirement]) => {
    await assert.rejects(create('refused', [requirement ?? '']), (error: Error) => {
      assert.match(error.message, /^Environment.* is invalid: spec\.requirements\[0\]: .* should match/s);
      return true;
    });
  });

  test('cannot be changed', async () => {
    await create('fixed', ['shout']);
    const change = { spec: { requirements: ['greeting'] } } as unknown as StoredEnvironment;
    await assert.rejects(
      cluster.client.patch(environments, { namespace: 'default', name: 'fixed' }, change),
      /an Environment cannot change; create another one/,
    );
  });

  test('is built once when a session needs it, and then every session of it has its programs', async () => {
    await create('tools', ['greeting']);
    assert.equal((await until('tools', 'Pending')).status?.conditions?.[0]?.reason, 'NotBuilt');
    for (const name of ['one', 'two']) {
      await cluster.create(name, { class: 'indexed', agent, environment: { name: 'tools' } });
      await cluster.turn(name, `${name}-1`, '');
    }
    for (const name of ['one', 'two']) {
      const turn = await cluster.ended(`${name}-1`);
      assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status));
      assert.equal(turn.status?.output, 'HELLO');
    }
    const { status } = await environment('tools');
    assert.deepEqual(named(status), ['greeting 1.0', 'shout 1.2']);
    for (const { hashes } of status?.packages ?? []) assert.match(hashes?.[0] ?? '', /^sha256:[0-9a-f]{64}$/);
    const { items } = await cluster.client.list(sessions, { namespace: 'default' });
    assert.equal(items.filter(({ spec }) => spec.build).length, 1);
    const { status: taken } = await cluster.session('one');
    assert.deepEqual([taken?.environment?.name, taken?.environment?.hash], ['tools', status?.hash]);
  });

  test('with an equal one shares its build', async () => {
    const built = index.asked.length;
    await create('same', ['greeting']);
    const { status } = await until('same', 'Ready');
    assert.equal(status?.hash, (await environment('tools')).status?.hash);
    assert.equal(index.asked.length, built);
  });

  test('that cannot be solved fails its turns with the words of the resolver', async () => {
    await create('wrong', ['greeting>=2']);
    await cluster.create('three', { class: 'indexed', agent, environment: { name: 'wrong' } });
    await cluster.turn('three', 'three-1', '');
    const { status } = await cluster.ended('three-1');
    assert.equal(status?.error?.code, 'EnvironmentFailed', JSON.stringify(status));
    assert.match(status?.error?.message ?? '', /Unsolvable: .*greeting>=2/s);
  });

  test('whose build is deleted is built again where a session needs it, with the same packages', async () => {
    const before = named((await environment('tools')).status);
    index.add({ ...SHOUT, version: '2.0' });
    const deleteBuild = async (name: string) => {
      const { status } = await environment(name);
      await cluster.client.delete(sessions, { namespace: 'default', name: status?.build ?? '' });
    };
    const asked = index.asked.length;
    await deleteBuild('tools');
    await until('tools', 'Pending');
    await cluster.create('four', { class: 'indexed', agent, environment: { name: 'tools' } });
    await cluster.turn('four', 'four-1', '');
    const four = (await cluster.ended('four-1')).status;
    assert.equal(four?.output, 'HELLO', JSON.stringify(four));
    const again = index.asked.length;
    assert.ok(again > asked, 'the index was asked again');
    assert.deepEqual(named((await environment('tools')).status), before);
    // The session "three" still waits for it.
    await deleteBuild('wrong');
    await eventually(async () => index.asked.length > again || undefined, { what: 'another build' });
    await until('wrong', 'Failed');
  });

  test('that is deleted stays with the sessions that have it, and keeps others waiting', async () => {
    await cluster.client.delete(environments, { namespace: 'default', name: 'tools' });
    await cluster.turn('four', 'four-2', '');
    assert.equal((await cluster.ended('four-2')).status?.output, 'HELLO');
    await cluster.create('six', { class: 'indexed', agent, environment: { name: 'tools' } });
    const waits = await eventually(
      async () =>
        (await cluster.session('six')).status?.conditions?.find(({ reason }) => reason === 'EnvironmentNotReady'),
      { what: 'six waits' },
    );
    assert.match(waits.message, /there is no Environment "tools"/);
    assert.equal((await cluster.session('six')).status?.podName, undefined);
  });

  test('whose archive was tampered with is not unpacked: the turn ends with what is wrong, and at once', async () => {
    await create('sealed', ['shout']);
    const { command: _, ...plain } = agent;
    const spec = { class: 'indexed', agent: { ...plain, command: ['true'] }, environment: { name: 'sealed' } };
    await cluster.create('seven', spec);
    await cluster.turn('seven', 'seven-1', '');
    assert.equal((await cluster.ended('seven-1')).status?.phase, 'Succeeded');
    const { status } = await environment('sealed');
    const stored = await cluster.client.list(blobs, { namespace: 'default' });
    const parts = stored.items.filter(({ spec }) => spec.sessionUID === status?.archive?.sessionUID);
    const [part] = parts.filter(({ spec }) => spec.kind === 'State');
    assert.ok(part, 'the archive is in Blobs');
    const { name, namespace, labels, ownerReferences } = part.metadata;
    const data = Buffer.from(part.spec.data, 'base64');
    data.writeUInt8(data.readUInt8(1000) ^ 1, 1000);
    const whole = Buffer.concat(parts.length === 1 ? [data] : []);
    const digest = createHash('sha256').update(whole).digest('hex');
    const changed = { ...part.spec, data: data.toString('base64'), digest };
    await cluster.client.delete(blobs, { namespace, name });
    await cluster.client.create(blobs, {
      metadata: { name, namespace, labels, ownerReferences },
      spec: changed,
    } as typeof part);
    // The controller holds the archive that it has read.
    await controller.kill('SIGTERM');
    controller = cluster.startController(env);
    await cluster.create('five', spec);
    await cluster.turn('five', 'five-1', '');
    const ended = (await cluster.ended('five-1')).status;
    assert.deepEqual([ended?.phase, ended?.error?.code], ['Failed', 'StartFailed'], JSON.stringify(ended));
    assert.match(ended?.error?.message ?? '', /environment could not be unpacked: the environment is not sealed/);
  });
});

describe('a Python environment for which the store has no room', () => {
  const cluster = installed({ ...ONE_LEADER, BERTH_STORE_CEILING_BYTES: '30000' });
  let index: PackageIndex;
  beforeAll(async () => {
    index = (await PackageIndex.start()).add(SHOUT);
    cluster.startController({ BERTH_UV: await uvProgram(), BERTH_STORE_CEILING_BYTES: '30000' });
    const overrides = ['agent.command', 'agent.input', 'agent.result', 'environment'] as const;
    const timeouts = { persist: '3s' };
    await cluster.createClass('indexed', { overrides: [...overrides], environments: { index: index.url }, timeouts });
  });
  afterAll(() => index.close());

  test('says so, and its turn ends and holds no slot', async () => {
    await cluster.client.create(environments, {
      ...{ apiVersion: 'berth.dev/v1alpha1', kind: 'Environment', metadata: { name: 'large', namespace: 'default' } },
      spec: { class: 'indexed', requirements: ['shout'] },
    } as unknown as StoredEnvironment);
    await cluster.create('waits', { class: 'indexed', agent, environment: { name: 'large' } });
    await cluster.turn('waits', 'waits-1', '');
    const { status } = await cluster.ended('waits-1');
    assert.equal(status?.error?.code, 'EnvironmentFailed', JSON.stringify(status));
    assert.match(status?.error?.message ?? '', /has no room/);
    const environment = await cluster.client.get(environments, { namespace: 'default', name: 'large' });
    assert.equal(environment.status?.conditions?.find(({ type }) => type === 'Ready')?.reason, 'StoreFull');
    assert.equal((await cluster.session('waits')).status?.podName, undefined);
  });
});
