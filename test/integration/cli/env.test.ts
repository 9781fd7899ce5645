import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { environments, sessions } from '../../../core/resources/kinds.ts';
import { uvProgram } from '../../../images/uv.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { PackageIndex } from '../../support/package-index.ts';
import { Caller } from './support.ts';

const SHOUT = { name: 'shout', version: '1.2', files: { 'shout.py': 'def loud(text):\n    return text.upper()\n' } };
const AGENT = `import json, shout, sys
print(json.dumps(shout.loud(json.loads(sys.stdin.readline())["input"])))
`;
const PROGRAM = ['--result', 'json', '--', 'python3', 'agent.py'];

describe('packages of a session', () => {
  const cluster = installed(ONE_LEADER);
  const project = mkdtempSync(join(tmpdir(), 'berth-env-'));
  const caller = new Caller(project);
  let index: PackageIndex;
  beforeAll(async () => {
    writeFileSync(join(project, 'agent.py'), AGENT);
    writeFileSync(join(project, 'requirements.txt'), '# what agent.py imports\nshout >=1\n');
    index = (await PackageIndex.start()).add(SHOUT);
    cluster.startController({ BERTH_UV: await uvProgram() });
    const overrides = [
      'agent.command',
      'agent.args',
      'agent.input',
      'agent.result',
      'agent.files',
      'environment',
    ] as const;
    const spec = { environments: { index: index.url } };
    await cluster.createClass('indexed', { ...spec, overrides: [...overrides] });
    await cluster.createClass('closed', { ...spec, agent: { command: ['python3'] }, overrides: ['environment'] });
    await cluster.createClass('bare', { overrides: ['agent.command', 'agent.args', 'agent.files', 'agent.result'] });
  });
  afterAll(async () => {
    await index.close();
    caller.remove();
    rmSync(project, { recursive: true, force: true });
  });

  const berth = (...args: string[]) => caller.berth(args, { env: { KUBECONFIG: cluster.kubeconfig } });
  const ok = async (...args: string[]) => {
    const { code, stdout, stderr } = await berth(...args);
    assert.equal(code, 0, `berth ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const builds = async () => (await cluster.client.list(sessions)).items.filter(({ spec }) => spec.build);

  test('run --requirements builds them once, and a second run of the same file takes what is there', async () => {
    const args = ['run', '--class', 'indexed', '--with', 'agent.py', '--requirements', 'requirements.txt'];
    for (const word of ['one', 'two']) {
      assert.equal(await ok(...args, '--input', JSON.stringify(word), ...PROGRAM), `${word.toUpperCase()}\n`);
    }
    assert.equal((await builds()).length, 1);
    assert.equal((await cluster.client.list(environments)).items.length, 1);
    assert.doesNotMatch(await ok('list'), /env-/);
  });

  test('env create, list, get, check and delete keep them by a name', async () => {
    assert.equal(
      await ok('env', 'create', 'tools', '--class', 'indexed', '-r', 'requirements.txt', 'shout<2'),
      'environment.berth.dev/tools created\n',
    );
    await eventually(async () => /^tools +Pending +NotBuilt/m.test(await ok('env', 'list')), { what: 'it is pending' });
    const checked = await ok('env', 'check', 'tools');
    assert.match(checked, /^environment\.berth\.dev\/tools checked: Python 3\.\d+\.\d+, 1 package\n$/);
    const shown = await ok('env', 'get', 'tools');
    assert.match(shown, /^Requirements: +shout >=1, shout<2$/m);
    assert.match(shown, /^Python: +3\./m);
    assert.match(shown, /^Size: +\d+ bytes$/m);
    assert.match(shown, /^ +shout +1\.2$/m);
    assert.doesNotMatch(await ok('list'), /check-/, 'the session of the check is gone');

    await ok('create', 'kept', '--class', 'indexed', '--with', 'agent.py', '--environment', 'tools', ...PROGRAM);
    assert.equal(await ok('turn', 'kept', '--input', '"a"'), 'A\n');
    assert.equal(await ok('env', 'delete', 'tools'), 'environment.berth.dev/tools deleted\n');
    await ok('suspend', 'kept');
    assert.equal(await ok('turn', 'kept', '--input', '"b"'), 'B\n');
  });

  test('env check tells the reason where an Environment cannot be built', async () => {
    await ok('env', 'create', 'wrong', '--class', 'indexed', 'shout>=2');
    const { code, stderr } = await berth('env', 'check', 'wrong');
    assert.equal(code, 1, stderr);
    assert.match(stderr, /EnvironmentFailed: .*Unsolvable: .*shout>=2/s);
    await ok('env', 'create', 'other', '--class', 'indexed', `shout --hash=sha256:${'0'.repeat(64)}`);
    const other = await berth('env', 'check', 'other');
    assert.equal(other.code, 1, other.stderr);
    assert.match(other.stderr, /EnvironmentFailed: .*HashMismatch: shout: no file of the index that fits/s);
  });

  for (const [what, args, message] of [
    ['an option', ['env', 'create', 'x', '--', '-e .'], /the option -e is not taken/],
    [
      'a place to look for packages',
      ['env', 'create', 'x', '--', '--find-links=here'],
      /the option --find-links is not/,
    ],
    ['a path', ['env', 'create', 'x', 'file:///etc/passwd'], /is a URL or a path/],
    ['a repository', ['env', 'create', 'x', 'a @ git+https://example.com/a'], /is a URL or a path/],
    ['a variable', ['env', 'create', 'x', ['a==$', '{HOME}'].join('')], /variables are not expanded/],
    ['a file that is missing', ['env', 'create', 'x', '-r', 'none.txt'], /--requirements none\.txt: .*ENOENT/],
    ['an Environment that is missing', ['env', 'check', 'none'], /there is no environment "none" in namespace default/],
    [
      'two environments',
      ['run', '--class', 'indexed', '--environment', 'a', '--requirements', 'requirements.txt', ...PROGRAM],
      /--environment and --requirements name two environments/,
    ],
    ['a Python for nothing', ['run', '--class', 'indexed', '--python', '3.12', ...PROGRAM], /--python says for which/],
    [
      'a class that allows none',
      ['run', '--class', 'bare', '--requirements', 'requirements.txt', ...PROGRAM],
      /--environment or --requirements.*spec\.environment: .*class "bare"/,
    ],
  ] as [string, string[], RegExp][]) {
    test(`${what} is refused, and nothing is created`, async () => {
      const { code, stderr } = await berth(...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
      const { items } = await cluster.client.list(environments);
      assert.ok(!items.some(({ metadata: { name } }) => name === 'x'));
    });
  }

  test('a uv project gives the packages of its lock with their hashes', async () => {
    const folder = join(project, 'uv-project');
    mkdirSync(folder);
    const source = `[[tool.uv.index]]\nurl = "${index.url}"\ndefault = true\n`;
    const facts = '[project]\nname = "mine"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["shout>=1"]\n';
    writeFileSync(join(folder, 'pyproject.toml'), facts + source);
    const env = { KUBECONFIG: cluster.kubeconfig, BERTH_UV: await uvProgram() };
    for (const [name, file] of [
      ['of-project', 'pyproject.toml'],
      ['of-lock', 'uv.lock'],
    ] as const) {
      const args = ['env', 'create', name, '--class', 'indexed', '-r', join('uv-project', file)];
      const { code, stderr } = await caller.berth(args, { env });
      assert.equal(code, 0, stderr);
      const { spec } = await cluster.client.get(environments, { namespace: 'default', name });
      assert.match(spec.requirements.join('\n'), /^shout==1\.2 --hash=sha256:[0-9a-f]{64}$/);
    }
    await ok('env', 'check', 'of-lock');

    // Only the digests that the lock names count, whatever the index has.
    const lock = readFileSync(join(folder, 'uv.lock'), 'utf8');
    const forged = lock.replace(/sha256:[0-9a-f]{64}/g, `sha256:${'0'.repeat(64)}`);
    assert.notEqual(forged, lock);
    writeFileSync(join(folder, 'uv.lock'), forged);
    const created = await caller.berth(['env', 'create', 'forged', '--class', 'indexed', '-r', 'uv-project/uv.lock'], {
      env,
    });
    assert.equal(created.code, 0, created.stderr);
    const mismatch = await berth('env', 'check', 'forged');
    assert.equal(mismatch.code, 1, mismatch.stderr);
    assert.match(mismatch.stderr, /HashMismatch/);

    const without = { KUBECONFIG: cluster.kubeconfig, BERTH_UV: '/nowhere/uv' };
    const missing = await caller.berth(['env', 'create', 'x', '-r', 'uv-project/uv.lock'], { env: without });
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /needs uv, and "\/nowhere\/uv" is not there/);
    writeFileSync(join(folder, 'uv.lock'), 'nonsense');
    const wrong = await caller.berth(['env', 'create', 'x', '-r', 'uv-project/uv.lock'], { env });
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /uv cannot read the project: .*uv\.lock/s);
  });

  test('a requirements file with a byte order mark is taken, and one in UTF-16 is refused by that name', async () => {
    writeFileSync(join(project, 'utf16.txt'), Buffer.from('\ufeffshout\r\n', 'utf16le'));
    const { code, stderr } = await caller.berth(['env', 'create', 'x', '-r', 'utf16.txt']);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /--requirements utf16\.txt is UTF-16 text; write it in UTF-8/);
    writeFileSync(join(project, 'marked.txt'), '\ufeffshout==1.0\r\n');
    await ok('env', 'create', 'marked', '--class', 'indexed', '-r', 'marked.txt');
    const { spec } = await cluster.client.get(environments, { namespace: 'default', name: 'marked' });
    assert.deepEqual(spec.requirements, ['shout==1.0']);
  });

  test('a line of a requirements file that is refused is named', async () => {
    writeFileSync(join(project, 'bad.txt'), 'shout\n\n--index-url https://example.com/simple\n');
    const { code, stderr } = await berth('env', 'create', 'x', '-r', 'bad.txt');
    assert.equal(code, 2);
    assert.match(stderr, /--requirements bad\.txt: line 3: the option --index-url is not taken/);
  });

  test('a class that lets nobody name a program says so to env check', async () => {
    await ok('env', 'create', 'locked', '--class', 'closed', 'shout');
    const { code, stderr } = await berth('env', 'check', 'locked');
    assert.equal(code, 2, stderr);
    assert.match(stderr, /spec\.agent\.command: .*class "closed"/);
  });

  test('a wait for a build shows what it prints', async () => {
    index.instead = 'hang';
    const { child, ended } = caller.start(
      [
        ...['run', '--class', 'indexed', '--requirements', 'requirements.txt', '--with', 'agent.py'],
        ...['--python', '3', '--input', '"c"', ...PROGRAM],
      ],
      { env: { KUBECONFIG: cluster.kubeconfig } },
    );
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (data: string) => {
      said += data;
      if (/building req-[0-9a-f]+: resolving 1 requirements/.test(said)) index.resume();
    });
    const { code, stdout, stderr } = await ended;
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'C\n');
    assert.match(stderr, /waiting: EnvironmentNotReady: .* is being built/);
  });
});
