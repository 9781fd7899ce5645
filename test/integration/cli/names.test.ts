import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { environments, sessionclasses, sessions, turns } from '../../../core/resources/kinds.ts';
import type { SessionClassSpec } from '../../../core/resources/sessionclass.ts';
import { ActedCluster, condition } from './acted.ts';

const NAMESPACE = 'default';

describe('names and words of a command line', () => {
  let cluster: ActedCluster;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
    await cluster.server.store.create(sessionclasses, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SessionClass',
      metadata: { name: 'terminal' },
      spec: { agent: { driver: 'Shell' } } as SessionClassSpec,
    });
  });
  afterAll(() => cluster.close());

  const inputOf = async (turn: string) =>
    (await cluster.server.store.get(turns, { namespace: NAMESPACE, name: turn })).spec.input;

  test('a text for a session of a shell is its command; other texts and drivers are as they were', async () => {
    await cluster.session('shell', { class: 'terminal', agent: {} });
    await cluster.session('own', { agent: { driver: 'Shell' } });
    await cluster.session('other');
    const given = async (...words: string[]) => {
      const { code, stdout, stderr } = await cluster.berth('turn', ...words, '--no-wait');
      assert.equal(code, 0, stderr);
      return inputOf(stdout.trim());
    };
    assert.deepEqual(await given('shell', 'ls -la'), { command: 'ls -la' });
    assert.deepEqual(await given('own', 'ls -la'), { command: 'ls -la' });
    assert.equal(await given('other', 'ls -la'), 'ls -la');
    assert.equal(await given('shell', '--text', 'ls -la'), 'ls -la');
  });

  test('what -o name prints is a name for every command', async () => {
    await cluster.session('piped');
    const turn = await cluster.berth('turn', 'session.berth.dev/piped', 'hello', '--no-wait', '-o', 'name');
    assert.match(turn.stdout, /^turn\.berth\.dev\/piped-[a-z0-9]+\n$/, turn.stderr);
    const listed = await cluster.berth('list', 'turns', '--session', 'session/piped', '-o', 'name');
    assert.equal(listed.stdout, turn.stdout);
    const wrong = await cluster.berth('suspend', turn.stdout.trim());
    assert.deepEqual([wrong.code, /that is a turn/.test(wrong.stderr)], [2, true], wrong.stderr);
    const waits = await cluster.berth('turn', 'piped', 'hello', '-o', 'name');
    assert.deepEqual([waits.code, /add --no-wait/.test(waits.stderr)], [2, true], waits.stderr);
    const gone = await cluster.berth('delete', 'session.berth.dev/piped', 'sessions/piped', '--yes');
    assert.equal(gone.stdout, 'session.berth.dev/piped deleted\n', gone.stderr);
  });

  test('-o name prints the name alone of what a command has done something to', async () => {
    await cluster.session('done');
    for (const name of ['done-1', 'done-2', 'done-3']) await cluster.turn(name, 'done');
    await cluster.end('done-1', { phase: 'Succeeded', index: 1, output: 'an output' });
    const since = '2026-01-01T00:00:00Z';
    const approval = { id: 'r1', prompt: 'Go on?', since, process: 'Ended', incarnation: 1, seq: 1, ranMs: 1 } as const;
    await cluster.end('done-2', { phase: 'AwaitingApproval', index: 2, approval });
    await cluster.say('done', { phase: 'Ready', conditions: [condition('Ready', 'True', 'Ready')] });
    const session = 'session.berth.dev/done\n';
    for (const [words, expected] of [
      [['attach', 'turn/done-1'], 'turn.berth.dev/done-1\n'],
      [['approve', 'done', '--deny'], 'turn.berth.dev/done-2\n'],
      [['cancel', 'done', '--no-wait'], 'turn.berth.dev/done-2\nturn.berth.dev/done-3\n'],
      [['wait', 'done', '--for=ready'], session],
      [['wait', 'done', '--for=turn=done-1'], 'turn.berth.dev/done-1\n'],
      [['suspend', 'done', '--no-wait'], session],
      [['resume', 'done'], session],
      [['restart', 'done', '--no-wait'], session],
    ] as const) {
      const { code, stdout, stderr } = await cluster.berth(...words, '-o', 'name');
      assert.deepEqual([code, stdout], [0, expected], `${words.join(' ')}: ${stderr}`);
    }
  });

  test('the first word of a command is asked for where it is missing before --, or --with took it', async () => {
    const refusals: [string[], RegExp][] = [
      [
        ['create', '--with', 'package.json', 'notes', '--', 'true'],
        /--with took notes for a file; write the name first: berth create notes --with package.json/,
      ],
      [['create', '--with', 'package.json', 'notes', '--', 'node', 'a.ts'], /--with took notes for a file/],
      [['create', '--with', 'package.json', 'notes'], /--with took notes for a file/],
      [
        ['create', '--with', 'package.json', '--', 'node', 'a.ts'],
        /the name is missing before --; write: berth create/,
      ],
      [
        ['map', '--with', 'bin', 'package.json', '--', 'node', 'a.ts'],
        /--with took package.json for a file; write the file first: berth map package.json --with bin -- PROGRAM/,
      ],
      [['exec', '--', 'ls', 'notes'], /the session is missing before --; write: berth exec SESSION -- PROGRAM/],
      [['update', '--with', 'package.json', 'notes'], /Put the session before the files of --with/],
    ];
    for (const [words, message] of refusals) {
      const { code, stderr } = await cluster.berth(...words);
      assert.equal(code, 2, words.join(' '));
      assert.match(stderr, message);
    }
    const made = await cluster.berth('create', 'first', '--with', 'package.json', '--', 'sh', 'a.sh', '--', 'b');
    assert.equal(made.code, 0, made.stderr);
  });

  test('delete takes a type before a name, looks for all objects first, and prints what -o name prints', async () => {
    await cluster.session('mixed');
    for (const name of ['mixed-1', 'mixed-2']) await cluster.turn(name, 'mixed');
    await cluster.server.store.create(environments, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Environment',
      metadata: { namespace: NAMESPACE, name: 'tools' },
      spec: { class: 'default', requirements: ['httpx'] },
    });
    const missing = await cluster.berth('delete', 'turn/mixed-1', 'environment/none', '--yes');
    assert.deepEqual([missing.code, missing.stdout], [2, '']);
    assert.match(missing.stderr, /there is no environment "none"/);
    const served = await cluster.berth('--server', 'http://127.0.0.1:1', 'delete', 'turn/mixed-1');
    assert.match(served.stderr, /delete of turns and Environments does not work through the HTTP API/);
    const both = await cluster.berth('delete', 'turn/mixed-1', 'turns/mixed-1', 'environment/tools');
    assert.equal(both.stdout, 'turn.berth.dev/mixed-1 deleted\nenvironment.berth.dev/tools deleted\n', both.stderr);
    const all = await cluster.berth('delete', 'mixed', '-o', 'name');
    assert.equal(all.stdout, 'session.berth.dev/mixed\n', all.stderr);
    const { items } = await cluster.server.store.list(environments, { namespace: NAMESPACE });
    assert.deepEqual(items, []);
    assert.equal((await cluster.berth('get', 'turn', 'mixed-1')).code, 2);
  });

  test('labels are the session’s, and a list selects by them', async () => {
    const made = await cluster.berth('create', 'blue', '--label', 'team=blue', '--label', 'a.b/c=', '--', 'true');
    assert.equal(made.code, 0, made.stderr);
    const { labels } = (await cluster.server.store.get(sessions, { namespace: NAMESPACE, name: 'blue' })).metadata;
    assert.deepEqual(labels, { team: 'blue', 'a.b/c': '' });
    assert.equal((await cluster.berth('list', '-l', 'team=blue', '-o', 'name')).stdout, 'session.berth.dev/blue\n');
    const dry = await cluster.berth('run', '--label', 'team=red', '--dry-run=client', '-o', 'json', '--', 'true');
    assert.deepEqual(JSON.parse(dry.stdout).items?.[0]?.metadata?.labels ?? JSON.parse(dry.stdout).metadata.labels, {
      team: 'red',
    });
  });
});
