import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { skipIf, skipWithout } from '../../support/requires.ts';

const run = promisify(execFile);
const CHECKOUT = join(import.meta.dirname, '..', '..', '..');
const LIMIT_MS = 180_000;

const noKeeper = skipWithout('keeper', existsSync(join(CHECKOUT, 'build/keeper')), 'build it with make keeper');

describe('the npm package of the command line', skipIf(noKeeper), () => {
  const root = mkdtempSync(join(tmpdir(), 'berth-package-test-'));
  const project = join(root, 'project');
  const installed = join(project, 'node_modules/berth');
  const bin = join(root, 'bin');
  const home = join(root, 'home');
  /** A PATH without Node, npm and a compiler. */
  const env = { PATH: bin, HOME: home, TMPDIR: root };
  let tarball = '';

  const berth = async (...args: string[]) => {
    const command = join(project, 'node_modules/.bin/berth');
    const { stdout } = await run(command, args, { env, cwd: project, timeout: LIMIT_MS });
    return stdout;
  };

  beforeAll(async () => {
    for (const folder of [project, bin, home]) mkdirSync(folder);
    for (const name of ['sh', 'readlink', 'mkfifo', 'tr']) symlinkSync(programOnPath(name), join(bin, name));
    const { stdout } = await run(process.execPath, [join(CHECKOUT, 'package/build.ts')], { timeout: LIMIT_MS });
    tarball = stdout.split('  ')[0] ?? '';
    // npm with what this machine calls node, not with the Node 24 that runs this test.
    const npm = [programOnPath('npm'), 'install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', tarball];
    await run(programOnPath('node'), npm, {
      cwd: project,
      env: { PATH: process.env.PATH, HOME: home },
      timeout: LIMIT_MS,
    });
  });
  afterAll(async () => {
    if (existsSync(installed)) await berth('local', 'down');
    rmSync(root, { recursive: true, force: true, maxRetries: 10 });
  });

  test('runs sessions on the embedded cluster where PATH has neither Node nor a compiler', async () => {
    assert.match(await berth('--help'), /^Usage: berth /);
    assert.equal(await berth('local', 'up', '--detach'), `${home}/.local/share/berth/kubeconfig\n`);
    const { client, server } = JSON.parse(await berth('version', '-o', 'json'));
    assert.deepEqual(server.installations, [{ version: client }]);
    const upper = ['--input-as', 'text', '--result', 'text', '--', 'tr', 'a-z', 'A-Z'];
    assert.equal(await berth('run', '--text', 'hello', ...upper), 'HELLO\n');
    await berth('create', 'notes', ...upper);
    assert.equal(await berth('turn', 'notes', '--text', 'again'), 'AGAIN\n');
    await berth('suspend', 'notes');
    assert.match(await berth('list'), /^notes +Suspended /m);
    assert.match(await berth('completion', 'bash'), /complete .*berth/);
    assert.match(await berth('__complete', 'get', 'no'), /^notes\tSuspended$/m);
  });

  test('starts agents by the keeper that is inside, with its own tool on their PATH', async () => {
    const script = 'readlink /proc/$PPID/exe; command -v berth-agent';
    const printed = await berth('run', '--result', 'text', '--', 'sh', '-c', script);
    const lib = join(realpathSync(installed), 'lib');
    assert.equal(printed, `${lib}/keeper\n${lib}/bin/berth-agent\n`);
  });

  test('starts with the code cache that is inside, which its Node takes', async () => {
    const start = JSON.stringify(join(installed, 'lib/start.cjs'));
    const script = `console.log(require(${start}).load().script.cachedDataRejected)`;
    const { stdout } = await run(join(installed, 'lib/node'), ['-e', script], { env, timeout: LIMIT_MS });
    assert.equal(stdout, 'false\n');
  });

  test('is called kubectl session where kubectl calls it', async () => {
    const command = join(project, 'node_modules/.bin/kubectl-session');
    const { stdout } = await run(command, ['--help'], { env, timeout: LIMIT_MS });
    assert.match(stdout, /^Usage: kubectl session /);
  });

  test('has the programs, what they read at run time and the licences, and nothing else', () => {
    const files = globSync('**', { cwd: installed }).filter((path) => statSync(join(installed, path)).isFile());
    const expected = [
      /^(LICENSE|LICENCES|README\.md|package\.json|bin\/berth)$/,
      /^lib\/(node|keeper|signals\.node|bin\/berth-agent|start\.cjs|cli\.cjs|cli\.cache)$/,
      /^lib\/[\w-]+\.(js|cjs)$/,
      /^manifests\/(embedded\/)?[\w-]+\.yaml$/,
      /^local\/apiserver\/registry\/builtin\/types\.json$/,
      /^runner\/environment\/build\.py$/,
    ];
    assert.deepEqual(
      files.filter((file) => !expected.some((pattern) => pattern.test(file))),
      [],
    );
    for (const name of ['lib/node', 'lib/keeper', 'lib/signals.node', 'lib/bin/berth-agent', 'lib/cli.cache'])
      assert.ok(files.includes(name), name);
    const own = files.filter((file) => file !== 'lib/node');
    const text = own.map((file) => readFileSync(join(installed, file), 'latin1')).join('\n');
    assert.ok(
      !text.includes(CHECKOUT) && !text.includes(`${homedir()}/`),
      'it names no path of the machine that packed it',
    );
    assert.doesNotMatch(text, /["'](test|scripts|images)\/[\w/-]+\.ts["']/);
    const licences = readFileSync(join(installed, 'LICENCES'), 'utf8');
    for (const name of ['commander', 'fastify', 'undici', 'yaml', 'zod', 'Node.js'])
      assert.match(licences, new RegExp(`^${name.replace('.', '\\.')} \\d`, 'm'));
  });
});

/** Path of a program on this machine's PATH, outside the checkout's own node_modules. */
function programOnPath(name: string): string {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.startsWith(CHECKOUT));
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (!found) throw new Error(`${name} is not on PATH`);
  return found;
}
