import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type AgentSettings, agentSettings } from '../../../../controller/settings/agent.ts';
import { type Agent, agent as agentSchema } from '../../../../core/resources/agent.ts';

/** The settings, where they contradict nothing. */
function settled(own: Agent, defaults: Agent): AgentSettings {
  const result = agentSettings(own, defaults);
  assert.ok(!('reason' in result), 'reason' in result ? result.message : '');
  return result;
}

function refused(own: Agent, defaults: Agent, message: RegExp): void {
  const result = agentSettings(own, defaults);
  assert.ok('reason' in result, 'it is refused');
  assert.equal(result.reason, 'InvalidSpec');
  assert.match(result.message, message);
}

describe('the driver Server', () => {
  const defaults: Agent = { driver: 'Server', command: ['serve'], args: ['--all'] };

  test('starts again rather than serve beside leftovers, unless the class says otherwise', () => {
    assert.deepEqual(settled({}, defaults).agent.server, { leftovers: 'Restart' });
    const allowing: Agent = { ...defaults, server: { leftovers: 'Allow' } };
    assert.deepEqual(settled({}, allowing).agent.server, { leftovers: 'Allow' });
  });

  test('refuses settings that it would not obey, by name', () => {
    refused({ input: 'Text' }, defaults, /^spec\.agent\.input: is set, but the driver Server/);
    refused({ result: 'Json' }, defaults, /^spec\.agent\.result: is set, but the driver Server/);
  });

  test('is the only one with its settings', () => {
    refused({ server: {} }, { command: ['x'] }, /^spec\.agent\.server: is set, but the driver Command/);
    assert.equal(settled({}, { command: ['x'] }).agent.server, undefined);
  });
});

test('a session that names another driver leaves the class’s settings of its own driver behind', () => {
  const server: Agent = { driver: 'Server', command: ['serve'], args: ['--all'], server: { leftovers: 'Allow' } };
  const { agent } = settled({ driver: 'Command', result: 'Text' }, server);
  assert.deepEqual([agent.command, agent.args, agent.result, agent.server], [['serve'], ['--all'], 'Text', undefined]);
  const text: Agent = { command: ['cat'], input: 'Text', result: 'Text' };
  assert.equal(settled({ driver: 'Server' }, text).agent.input, 'Stdin');
  assert.equal(settled({}, text).agent.input, 'Text');
});

test('arguments of the class belong to the command of the class', () => {
  const defaults: Agent = { command: ['a'], args: ['b'] };
  assert.deepEqual(settled({}, defaults).agent.args, ['b']);
  assert.deepEqual(settled({ command: ['c'] }, defaults).agent.args, []);
  assert.deepEqual(settled({ args: ['d'] }, defaults).agent.args, ['d']);
});

test('a command is needed', () => refused({}, {}, /^spec\.agent\.command: is not set/));

describe('the driver Shell', () => {
  const defaults: Agent = { driver: 'Shell' };

  test('needs no command, and rewrites unless the class says otherwise', () => {
    const { agent } = settled({}, defaults);
    assert.deepEqual([agent.command, agent.args, agent.shell], [[], [], { rewriteBackground: true }]);
    const verbatim: Agent = { ...defaults, shell: { rewriteBackground: false } };
    assert.deepEqual(settled({}, verbatim).agent.shell, { rewriteBackground: false });
  });

  test('refuses settings that it would not obey, by name', () => {
    refused({ command: ['x'] }, defaults, /^spec\.agent\.command: is set, but the driver Shell/);
    refused({ args: ['x'] }, defaults, /^spec\.agent\.args: is set, but the driver Shell/);
    refused({ input: 'Stdin' }, defaults, /^spec\.agent\.input: is set, but the driver Shell/);
    refused({ result: 'Envelope' }, defaults, /^spec\.agent\.result: is set, but the driver Shell/);
    refused({ shell: {} }, { command: ['x'] }, /^spec\.agent\.shell: is set, but the driver Command/);
  });

  test('leaves the program of a class of another driver behind', () => {
    const { agent } = settled({ driver: 'Shell' }, { command: ['serve'], args: ['--all'], input: 'Text' });
    assert.deepEqual([agent.command, agent.args], [[], []]);
  });
});

describe('the driver Tools', () => {
  const tool = { name: 'x', command: ['true'] };

  test('gives a call 30 seconds, any object for arguments and four calls at once, unless the class says otherwise', () => {
    const { agent } = settled({}, { driver: 'Tools', tools: [tool, { ...tool, name: 'y', timeout: '2m' }] });
    assert.deepEqual(agent.tools, [
      { ...tool, description: '', parameters: { type: 'object' }, timeoutMs: 30_000 },
      { ...tool, name: 'y', description: '', parameters: { type: 'object' }, timeoutMs: 120_000 },
    ]);
    assert.equal(agent.maxParallel, 4);
    assert.equal(settled({}, { driver: 'Tools', tools: [tool], maxParallel: 2 }).agent.maxParallel, 2);
  });

  test('refuses what no call could be made with, by name', () => {
    refused({ input: 'Text' }, { driver: 'Tools', tools: [tool] }, /^spec\.agent\.input: is Text, but the arguments/);
    refused({}, { driver: 'Tools' }, /^spec\.agent\.tools: is not set/);
    const method = { name: 'x', method: 'm' };
    refused({}, { driver: 'Tools', tools: [method] }, /^spec\.agent\.command: is not set, but tool x is a method/);
  });

  test('with input Args refuses a tool whose parameters no argument names, and takes one that has none', () => {
    const parameters = { type: 'object', properties: { a: { type: 'string' } } };
    const none = { type: 'object', properties: {} };
    const class_: Agent = { driver: 'Tools', input: 'Args', command: ['serve'] };
    const of = (more: object, args: string[] = []): Agent => ({ ...class_, args, tools: [{ name: 'y', ...more }] });
    refused(
      {},
      of({ command: ['cat', '$$(INPUT)'], parameters }),
      /^spec\.agent\.tools: y: command has no \$\(INPUT\)/,
    );
    refused({}, of({ command: ['$(INPUT.a)'], parameters }), /^spec\.agent\.tools: y: command has no \$\(INPUT\)/);
    refused({}, of({ method: 'm', parameters }), /^spec\.agent\.args: \(of tool y\) has no \$\(INPUT\)/);
    settled({}, of({ method: 'm', parameters }, ['--a=$(INPUT.a)']));
    for (const more of [{}, { parameters: none }]) settled({}, of({ command: ['cat'], ...more }));
    settled({}, of({ command: ['cat', 'x$(INPUT.a)'], parameters }));
    settled({ input: 'Stdin' }, of({ command: ['cat'], parameters }));
  });
});

test('a path that leaves its folder, and a name that is not valid, are refused with the field', () => {
  const secretKeyRef = { name: 's', key: 'k' };
  const wrong: [object, string][] = [
    ...['../x', 'a/../../x', '/etc/x', 'a//b', '.', '.hidden/x', 'a/', 'a\nb', ''].map((path): [object, string] => [
      { secretFiles: [{ path, secretKeyRef }] },
      'secretFiles.0.path',
    ]),
    ...['../x', 'a/../x', '..', '/x', 'a/..'].map((resumeWhen): [object, string] => [{ resumeWhen }, 'resumeWhen']),
    ...['work', '', './x'].map((workingDir): [object, string] => [{ workingDir }, 'workingDir']),
    ...['A B', 'A;id', '1A', ''].map((name): [object, string] => [{ env: [{ name, value: '' }] }, 'env.0.name']),
    ...['a b', '$(id)', ''].map((name): [object, string] => [{ tools: [{ name, command: ['x'] }] }, 'tools.0.name']),
    [{ command: 'rm -rf /' }, 'command'],
    [{ args: 'x' }, 'args'],
  ];
  for (const [spec, field] of wrong) {
    const { error } = agentSchema.safeParse(spec);
    const fields = new Set(error?.issues.map(({ path }) => path.join('.')));
    assert.deepEqual([...fields], [field], JSON.stringify(spec));
  }
  for (const resumeWhen of ['*', 'a', '.x', './a/*.b', 'sessions/**/*.jsonl', '{a,b}/.c/d.', 'x.y.z']) {
    assert.equal(agentSchema.safeParse({ resumeWhen }).success, true, resumeWhen);
  }
});

describe('lines of JSON', () => {
  const defaults: Agent = { command: ['x'], result: 'JsonLines', jsonLines: { resultWhen: { '/type': 'result' } } };

  test('need to be told where the result stands, and only they', () => {
    assert.deepEqual(settled({}, defaults).agent.jsonLines, { resultWhen: { '/type': 'result' } });
    refused({}, { command: ['x'], result: 'JsonLines' }, /^spec\.agent\.jsonLines: is not set/);
    refused({ result: 'Json' }, defaults, /^spec\.agent\.jsonLines: is set, but agent\.result is Json/);
    const unused = { resultWhen: { '/type': 'result' }, error: '/error' };
    refused({ jsonLines: unused }, defaults, /^spec\.agent\.jsonLines\.error: is set, but errorWhen is not/);
    const key = { resultWhen: { type: 'result' } };
    refused({ jsonLines: key }, defaults, /^spec\.agent\.jsonLines\.resultWhen: "type" is no JSON pointer/);
  });
});

describe('arguments to go on', () => {
  const defaults: Agent = { command: ['x'], args: ['new'], resumeArgs: ['resume'], resumeWhen: '*.jsonl' };

  test('are needed where it is said when to go on', () => {
    refused({ resumeWhen: '*' }, { command: ['x'] }, /^spec\.agent\.resumeWhen: is set, but agent\.resumeArgs is not/);
  });

  test('belong to the arguments they replace', () => {
    const { agent } = settled({}, defaults);
    assert.deepEqual([agent.resumeArgs, agent.resumeWhen], [['resume'], '*.jsonl']);
    for (const own of [{ command: ['y'] }, { args: ['other'] }]) {
      const { agent: changed } = settled(own, defaults);
      assert.deepEqual([changed.resumeArgs, changed.resumeWhen], [undefined, undefined]);
    }
  });
});

describe('files of secrets', () => {
  const file = (path: string, name: string) => ({ path, secretKeyRef: { name, key: 'k' } });

  test('of the session replace the class’s of the same path', () => {
    const defaults: Agent = { command: ['x'], secretFiles: [file('a', 'one'), file('b', 'two')] };
    const { secretFiles, agent } = settled({ secretFiles: [file('b', 'three')] }, defaults);
    assert.deepEqual(secretFiles, [
      { path: 'a', name: 'one', key: 'k' },
      { path: 'b', name: 'three', key: 'k' },
    ]);
    assert.deepEqual(agent.secretFiles, [{ path: 'a' }, { path: 'b' }], 'the runner is told the paths alone');
  });

  test('cannot be below one another', () => {
    refused(
      { command: ['x'], secretFiles: [file('a', 's'), file('a/b', 's')] },
      {},
      /^spec\.agent\.secretFiles: "a\/b" is below/,
    );
  });
});
