import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import type { StoredSession } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { Caller } from './support.ts';

const EXAMPLES = join(import.meta.dirname, '..', '..', '..', 'examples');
const caller = new Caller(EXAMPLES);
const file = (name: string, text: string) => {
  const path = join(caller.root, name);
  writeFileSync(path, text);
  return path;
};

beforeAll(async () => {
  await caller.ok('local', 'up', '--detach');
});
afterAll(async () => {
  await caller.berth(['local', 'down']);
  caller.remove();
});

const session = async (name: string): Promise<StoredSession> => JSON.parse(await caller.ok('get', name, '-o', 'json'));
const everything = async () =>
  (await caller.ok('list', '-o', 'name')) + (await caller.ok('list', 'turns', '-o', 'name'));
const cat = ['--input-as', 'text', '--result', 'text', '--', 'cat'];

describe('the flags of run and create', () => {
  test('set driver, limits, idle time and variables from Secrets', async () => {
    const flags = ['--driver', 'shell', '--cpu', '500m', '--memory', '256Mi', '--idle', '5m', '--timeout', '1m'];
    await caller.ok('create', 'set', ...flags, '--env', 'A=1', '--env-from-secret', 'KEY=model/api.key');
    const { spec } = await session('set');
    assert.equal(spec.agent?.driver, 'Shell');
    assert.deepEqual(spec.resources, { limits: { cpu: '500m', memory: '256Mi' } });
    assert.deepEqual(spec.timeouts, { turn: '1m', idle: '5m' });
    assert.deepEqual(spec.agent?.env, [
      { name: 'A', value: '1' },
      { name: 'KEY', valueFrom: { secretKeyRef: { name: 'model', key: 'api.key' } } },
    ]);
  });
  test('let a program of its own driver run: Shell needs none', async () => {
    assert.match(
      await caller.ok('run', '--driver', 'shell', '--input', '{"command": "echo ran"}'),
      /"stdout":"ran\\n"/,
    );
  });

  const wrong: [what: string, flags: string[], message: RegExp][] = [
    [
      'an unknown driver',
      ['--driver', 'python'],
      /'--driver <driver>'.*Allowed choices are command, server, shell, tools/,
    ],
    ['memory without a unit', ['--memory', '512'], /'--memory <amount>'.*that is 512 bytes; add a unit/],
    ['CPU that is none', ['--cpu', '2Gi'], /'--cpu <amount>'.*number of cores/],
    ['an idle time that is none', ['--idle', '5'], /'--idle <duration>'.*"5" is not a duration/],
    [
      'a Secret without a key',
      ['--env-from-secret', 'A=model'],
      /--env-from-secret A=model: "" is no key.*NAME=SECRET\/KEY/,
    ],
    ['a Secret without a name', ['--env-from-secret', 'A'], /--env-from-secret A: "" is no name of a Secret/],
    ['a variable that is none', ['--env-from-secret', '1A=m/k'], /--env-from-secret 1A=m\/k: "1A" is no variable name/],
    [
      'a variable that is set twice',
      ['--env', 'A=1', '--env-from-secret', 'A=m/k'],
      /--env and --env-from-secret both set A/,
    ],
    ['a dry run of an unknown kind', ['--dry-run', 'all'], /'--dry-run <mode>'.*client, server/],
    [
      '--rm with --detach',
      ['--rm', '--detach'],
      /--rm deletes the session at the end, for which --detach does not wait/,
    ],
    ['names of a run that is waited for', ['-o', 'name'], /-o name prints names alone: add --detach or --dry-run/],
  ];
  for (const [what, flags, message] of wrong) {
    test(`are refused by name: ${what}`, async () => {
      const { code, stdout, stderr } = await caller.berth(['run', ...flags, '--', 'true']);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    });
  }
});

describe('berth run --detach', () => {
  test('prints the names of session and turn and returns', async () => {
    const printed = await caller.ok('run', '--detach', '--name', 'away', '--', 'sleep', '600');
    assert.equal(printed, 'session.berth.dev/away\nturn.berth.dev/away\n');
    await caller.ok('cancel', 'away');
  });
});

describe('berth run --rm', () => {
  const gone = async (name: string) => (await caller.berth(['get', name])).code === 2;
  test('deletes the session at the end, of a turn that succeeded and of one that failed', async () => {
    assert.equal(await caller.ok('run', '--rm', '--name', 'once', '--text', 'a', ...cat), 'a\n');
    assert.ok(await gone('once'));
    const { code, stderr } = await caller.berth(['run', '--rm', '--name', 'once', '--', 'sh', '-c', 'exit 3']);
    assert.equal(code, 1);
    assert.doesNotMatch(stderr, /berth logs/);
    assert.ok(await gone('once'));
  });
  test('deletes the session after Ctrl-C', async () => {
    const { child, ended } = caller.start(['run', '--rm', '--name', 'stopped', '--', 'sleep', '600']);
    await eventually(async () => (await session('stopped')).status?.phase === 'Running', { what: 'the turn runs' });
    child.kill('SIGINT');
    assert.equal((await ended).code, 130);
    assert.ok(await gone('stopped'));
  });
});

describe('--dry-run', () => {
  test('creates nothing; client shows what would be sent, server what would be stored', async () => {
    const before = await everything();
    const args = ['--name', 'rehearsed', '--text', 'a', ...cat];
    assert.equal(
      await caller.ok('run', '--dry-run=client', ...args),
      'session.berth.dev/rehearsed created (dry run)\nturn.berth.dev/rehearsed created (dry run)\n',
    );
    assert.match(await caller.ok('run', '--dry-run', 'server', ...args), /turn\S+ created \(server dry run\)\n/);
    const [client, server] = await Promise.all(
      ['client', 'server'].map(async (mode) =>
        JSON.parse(await caller.ok('run', `--dry-run=${mode}`, '-o', 'json', ...args)),
      ),
    );
    assert.deepEqual(
      client.items.map(({ kind }: { kind: string }) => kind),
      ['Session', 'Turn'],
    );
    assert.equal(client.items[0].metadata.uid, undefined);
    assert.equal(server.items[1].metadata.ownerReferences[0].uid, server.items[0].metadata.uid);
    const created = parse(await caller.ok('create', 'alone', '--dry-run=client', '-o', 'yaml', '--', 'true'));
    assert.deepEqual([created.kind, created.metadata.name, created.spec.turns], ['Session', 'alone', 'Many']);
    assert.equal(await everything(), before);
  });
  test('shows the files and the Environment too, and creates neither', async () => {
    const requirements = file('requirements.txt', 'six==1.17.0\n');
    const flags = ['--dry-run=client', '-o', 'yaml', '--class', 'python', '--with', 'agent.py'];
    const printed = await caller.ok('run', ...flags, '--requirements', requirements, '--', 'python3', 'agent.py');
    const kinds = parseAllDocuments(printed).map((document) => document.toJS().kind);
    assert.deepEqual(kinds, ['Environment', 'Session', 'ConfigMap', 'Turn']);
    assert.match((await caller.berth(['env', 'list'])).stderr, /no environments/);
  });
  test('finds in the server what the client cannot know', async () => {
    await caller.ok('create', 'exists', '--', 'true');
    assert.equal((await caller.berth(['create', 'exists', '--dry-run=client', '--', 'true'])).code, 0);
    const { code, stderr } = await caller.berth(['create', 'exists', '--dry-run=server', '--', 'true']);
    assert.equal(code, 2);
    assert.match(stderr, /"exists" already exists/);
  });
});

describe('-f', () => {
  const manifest = (kind: string, name: string, spec: string, more = '') =>
    `apiVersion: berth.dev/v1alpha1\nkind: ${kind}\nmetadata:\n  name: ${name}${more}\nspec: ${spec}\n`;

  test('runs what --dry-run has shown', async () => {
    const shown = await caller.ok('run', '--dry-run=client', '-o', 'yaml', '--name', 'shown', '--text', 'é', ...cat);
    assert.equal(await caller.ok('run', '-f', file('shown.yaml', shown)), 'é\n');
    assert.equal((await session('shown')).spec.turns, 'One');
  });
  test('runs a Session with the input of the manifest or of a flag, also from stdin', async () => {
    const spec = '{agent: {command: [cat], input: Text, result: Text}, input: own}';
    const labelled = manifest('Session', 'labelled', spec, '\n  labels: {team: red}');
    const { stdout } = await caller.berth(['run', '-f', '-'], { stdin: labelled });
    assert.equal(stdout, 'own\n');
    assert.match(await caller.ok('list', '-l', 'team=red', '-o', 'name'), /labelled/);
    const open = file('open.yaml', manifest('Session', 'open', '{agent: {command: [cat], input: Text, result: Text}}'));
    assert.equal(await caller.ok('run', '-f', open, '--text', 'given'), 'given\n');
  });
  test('creates a Session that takes turns, and gives it the Turn of a manifest', async () => {
    const spec = '{agent: {command: [cat], input: Text, result: Text}}';
    const path = file('many.yaml', manifest('Session', 'many', spec));
    assert.equal(await caller.ok('create', '-f', path), 'session.berth.dev/many created\n');
    const turn = file('turn.yaml', manifest('Turn', 'many-1', '{session: many, input: first}'));
    assert.equal(await caller.ok('run', '-f', turn), 'first\n');
    const second = file(
      'second.json',
      JSON.stringify(parse(readFileSync(turn, 'utf8'))).replaceAll('many-1', 'many-2'),
    );
    assert.equal(await caller.ok('create', '-f', second), 'turn.berth.dev/many-2 created\n');
  });
  test('keeps an integer of 64 bits', async () => {
    const path = file(
      'large.yaml',
      manifest('Turn', 'many-3', '{session: many, input: "9"}').replace('"9"', '9007199254740993'),
    );
    assert.match(await caller.ok('create', '-f', path, '--dry-run=server', '-o', 'json'), /"input": 9007199254740993/);
  });

  const good = manifest('Session', 'fine', '{agent: {command: ["true"]}}');
  const wrong: [what: string, args: string[], text: string, message: RegExp][] = [
    ['a flag that says the same', ['run', '--image', 'x'], good, /--image and -f are both given/],
    ['a class that is given twice', ['run', '--class', 'default'], good, /--class and -f are both given/],
    ['a timeout of a Session', ['create', '--timeout', '1m'], good, /--timeout and -f .*spec\.timeouts\.turn/],
    ['another name', ['create', 'other'], good, /the name other and metadata\.name fine/],
    ['a misspelt field', ['create'], good.replace('agent', 'agents'), /unknown field "spec\.agents"/],
    ['a Session that is none', ['create'], good.replace('["true"]', '[]'), /spec\.agent\.command/],
    [
      'a class that does not exist',
      ['create'],
      good.replace('{agent', '{class: none, agent'),
      /no SessionClass "none"/,
    ],
    ['a session of many turns', ['run'], good.replace('{agent', '{turns: Many, agent'), /spec\.turns is Many/],
    ['a Turn of a session that does not exist', ['run'], manifest('Turn', 't', '{session: none}'), /no session "none"/],
    [
      '--rm of a session that exists',
      ['run', '--rm'],
      manifest('Turn', 't', '{session: many}'),
      /--rm deletes the session that/,
    ],
  ];
  for (const [what, args, text, message] of wrong) {
    test(`is refused, and nothing is created: ${what}`, async () => {
      const before = await everything();
      const { code, stdout, stderr } = await caller.berth([...args, '-f', file('wrong.yaml', text)]);
      assert.deepEqual([code, stdout], [2, ''], stderr);
      assert.match(stderr, message);
      assert.equal(await everything(), before);
    });
  }
  test('is refused for a file that does not exist, and create without a name or a file', async () => {
    assert.match((await caller.berth(['run', '-f', 'none.yaml'])).stderr, /-f none\.yaml: there is no file/);
    const { code, stderr } = await caller.berth(['create']);
    assert.equal(code, 2);
    assert.match(stderr, /there is no name; write: berth create NAME -- PROGRAM/);
  });
});
