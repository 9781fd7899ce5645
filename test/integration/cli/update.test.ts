import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { configMaps } from '../../../core/kube/resources.ts';
import { environments, sessions } from '../../../core/resources/kinds.ts';
import { ActedCluster } from './acted.ts';

const NAMESPACE = 'default';

describe('update', () => {
  let cluster: ActedCluster;
  let file: string;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
    file = join(cluster.caller.root, 'agent.sh');
    writeFileSync(file, 'echo 1');
  });
  afterAll(() => cluster.close());

  const stored = (name: string) => cluster.server.store.get(sessions, { namespace: NAMESPACE, name });
  const filesOf = async (session: string) => {
    const { items } = await cluster.server.store.list(configMaps, { namespace: NAMESPACE });
    return items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith(`${session}-files`));
  };

  test('gives a session files in place of those that it had, and variables beside those that it has', async () => {
    const made = await cluster.berth('create', 'notes', '--env', 'A=1', '--env', 'B=1', '--with', file, '--', 'sh');
    assert.equal(made.code, 0, made.stderr);
    writeFileSync(file, 'echo 2');
    const { code, stdout, stderr } = await cluster.berth('update', 'notes', '--env', 'B=2', '--with', file);
    assert.deepEqual([code, stdout], [0, 'session.berth.dev/notes updated\n'], stderr);
    assert.match(stderr, /its next turn starts a pod with these settings/);
    const { agent } = (await stored('notes')).spec;
    const env = [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ];
    assert.deepEqual(agent?.env, env);
    const present = await filesOf('notes');
    assert.deepEqual(
      agent?.files?.map(({ configMap }) => configMap),
      present,
    );
    assert.notDeepEqual(present, ['notes-files']);
  });

  test('says which pod keeps the earlier settings, or changes nothing', async () => {
    await cluster.session('busy', { agent: { command: ['true'], env: [{ name: 'A', value: '1' }] } });
    await cluster.say('busy', { phase: 'Ready', podName: 's-1' });
    const same = await cluster.berth('update', 'session.berth.dev/busy', '--env', 'A=1');
    assert.deepEqual([same.code, same.stdout, same.stderr], [0, 'session.berth.dev/busy unchanged\n', '']);
    const { stdout, stderr } = await cluster.berth('update', 'busy', '--env', 'A=2', '-o', 'name');
    assert.equal(stdout, 'session.berth.dev/busy\n');
    assert.match(stderr, /its pod keeps the settings that it started with; for a new one: berth restart busy/);
    const idle = await cluster.berth('update', 'busy', '--idle', '5m');
    assert.deepEqual([idle.stdout, idle.stderr], ['session.berth.dev/busy updated\n', '']);
  });

  test('with --restart asks for a new pod in the same write, and waits until the present one is gone', async () => {
    await cluster.session('served');
    await cluster.say('served', { phase: 'Ready', podName: 's-2' });
    const command = cluster.start('update', 'served', '--memory', '512Mi', '--restart');
    await command.says(/served updated/);
    const { spec, metadata } = await stored('served');
    assert.equal(spec.resources?.limits?.memory, '512Mi');
    assert.ok(spec.restartRequest);
    assert.equal(metadata.generation, 2);
    await cluster.say('served', { phase: 'Suspended', podName: null } as never);
    const { code, stdout, stderr } = await command.ended;
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'session.berth.dev/served updated\nsession.berth.dev/served restarted\n');
  });

  test('makes an Environment of the requirements', async () => {
    await cluster.session('packed');
    const requirements = join(cluster.caller.root, 'requirements.txt');
    writeFileSync(requirements, 'httpx==0.28.1\n');
    const { code, stderr } = await cluster.berth('update', 'packed', '--requirements', requirements);
    assert.equal(code, 0, stderr);
    const name = (await stored('packed')).spec.environment?.name ?? '';
    const { spec } = await cluster.server.store.get(environments, { namespace: NAMESPACE, name });
    assert.deepEqual(spec.requirements, ['httpx==0.28.1']);
  });

  test('refuses what cannot be changed, with what to do, and stores nothing', async () => {
    await cluster.session('kept', { turns: 'Many' });
    await cluster.session('over');
    await cluster.say('over', { phase: 'Finished' });
    await cluster.server.store.create(sessions, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Session',
      metadata: { namespace: NAMESPACE, name: 'built' },
      spec: { build: 'Environment', input: {} } as never,
    });
    const refusals: [string[], RegExp][] = [
      [['kept'], /nothing is to be changed; give --with, --requirements, --env or another setting\n/],
      [['kept', '--restart'], /to restart it alone: berth restart kept/],
      [['kept', '--env', 'A=1', '--timeout', '5s'], /--timeout is about the wait for --restart/],
      [['kept', '--env', 'A=1', '--no-wait'], /--no-wait is about the wait for --restart/],
      [['kept', '--env', 'BERTH_A=1'], /names that begin with BERTH_ are Berth's own/],
      [['kept', '--environment', 'none'], /there is no environment "none"/],
      [['kept', '--with', 'missing'], /--with missing: .*cannot be read \(ENOENT\)/],
      [['none', '--with', file], /there is no session "none"/],
      [['over', '--with', file], /session over is finished/],
      [['built', '--with', file], /a session that builds runs no agent/],
      [['turn/kept-1', '--env', 'A=1'], /that is a turn/],
      [['--server', 'http://127.0.0.1:1', 'kept', '--env', 'A=1'], /update does not work through the HTTP API/],
    ];
    for (const [words, message] of refusals) {
      const { code, stdout, stderr } = await cluster.berth('update', ...words);
      assert.notEqual(code, 0, words.join(' '));
      assert.match(stderr, message);
      assert.equal(stdout, '');
    }
    assert.equal((await stored('kept')).metadata.generation, 1);
    for (const session of ['kept', 'over', 'built', 'none']) assert.deepEqual(await filesOf(session), []);
  });

  test('keeps what others write at the same time', async () => {
    await cluster.session('shared', { agent: { command: ['true'], env: [] } });
    const all = ['A', 'B', 'C', 'D'];
    const ended = await Promise.all(all.map((name) => cluster.berth('update', 'shared', '--env', `${name}=1`)));
    assert.deepEqual(
      ended.map(({ code }) => code),
      [0, 0, 0, 0],
    );
    const { agent } = (await stored('shared')).spec;
    assert.deepEqual(agent?.env?.map(({ name }) => name).toSorted(), all);
  });
});
