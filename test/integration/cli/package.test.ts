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
import { basename, delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { follow } from '../../support/follow.ts';
import { commands } from '../../support/pages.ts';
import { skipIf, skipWithout } from '../../support/requires.ts';

const run = promisify(execFile);
const CHECKOUT = join(import.meta.dirname, '..', '..', '..');
const LIMIT_MS = 180_000;

const noKeeper = skipWithout('keeper', existsSync(join(CHECKOUT, 'build/keeper')), 'build it with make keeper');

describe('the npm package of the command line', skipIf(noKeeper), () => {
  const root = mkdtempSync(join(tmpdir(), 'berth-package-test-'));
  /** Folder that npm installs into with -g. */
  const prefix = join(root, 'prefix');
  const installed = join(prefix, 'lib/node_modules/berth');
  const bin = join(root, 'bin');
  const home = join(root, 'home');
  /** A PATH without Node, npm and a compiler. */
  const env = { PATH: bin, HOME: home, TMPDIR: root };
  /** npm with what this machine calls node, not with the Node 24 that runs this test; without a registry or a git host. */
  const npmEnv = {
    PATH: `${join(prefix, 'bin')}:${outsidePath()}`,
    HOME: home,
    npm_config_prefix: prefix,
    npm_config_offline: 'true',
    npm_config_ignore_scripts: 'true',
    GIT_ALLOW_PROTOCOL: 'none',
  };

  const berth = async (...args: string[]) => {
    const { stdout } = await run(join(prefix, 'bin/berth'), args, { env, cwd: home, timeout: LIMIT_MS });
    return stdout;
  };
  /** Runs the commands of a page that install the package, from the first that names it to the last. */
  const install = async (page: string, last: RegExp, folder: string) => {
    const typed = commands(page);
    const from = typed.findIndex(({ typed }) => typed.startsWith('npm install -g '));
    const to = typed.findIndex(({ typed }, at) => at >= from && last.test(typed));
    assert.ok(from >= 0 && to >= from, `${page} installs the package`);
    await follow(typed.slice(from, to + 1), { page, folder, env: npmEnv, limitMs: LIMIT_MS });
  };

  beforeAll(async () => {
    for (const folder of [prefix, bin, home]) mkdirSync(folder);
    for (const name of ['sh', 'readlink', 'mkfifo', 'tr']) symlinkSync(programOnPath(name), join(bin, name));
    const { stdout } = await run(process.execPath, [join(CHECKOUT, 'package/build.ts')], { timeout: LIMIT_MS });
    const [tarball = ''] = stdout.split('  ');
    // A clone as `make package` leaves it.
    mkdirSync(join(root, 'clone/build'), { recursive: true });
    symlinkSync(tarball, join(root, 'clone/build', basename(tarball)));
    await install('README.md', /^npm install/, join(root, 'clone'));
  });
  afterAll(async () => {
    if (existsSync(installed)) await berth('local', 'down');
    rmSync(root, { recursive: true, force: true, maxRetries: 10 });
  });

  test('is installed and used as docs/install.md says', async () => {
    await install('docs/install.md', /^berth local down$/, join(root, 'clone/build'));
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
    const command = join(prefix, 'bin/kubectl-session');
    const { stdout } = await run(command, ['--help'], { env, timeout: LIMIT_MS });
    assert.match(stdout, /^Usage: kubectl session /);
  });

  test('has the programs, what they read at run time and the licences, and nothing else', () => {
    const files = globSync('**', { cwd: installed }).filter((path) => statSync(join(installed, path)).isFile());
    const expected = [
      /^(LICENSE|LICENCES|README\.md|package\.json|bin\/berth)$/,
      /^lib\/(node|keeper|signals\.node|bin\/berth-(agent|enter)|start\.cjs|cli\.cjs|cli\.cache)$/,
      /^lib\/[\w-]+\.(js|cjs)$/,
      /^manifests\/(embedded\/)?[\w-]+\.yaml$/,
      /^local\/apiserver\/registry\/builtin\/types\.json$/,
      /^runner\/environment\/build\.py$/,
    ];
    assert.deepEqual(
      files.filter((file) => !expected.some((pattern) => pattern.test(file))),
      [],
    );
    for (const name of [
      'lib/node',
      'lib/keeper',
      'lib/signals.node',
      'lib/bin/berth-agent',
      'lib/bin/berth-enter',
      'lib/cli.cache',
    ])
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

/** This machine's PATH without the checkout's own node_modules. */
function outsidePath(): string {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.startsWith(CHECKOUT))
    .join(delimiter);
}

function programOnPath(name: string): string {
  const folders = outsidePath().split(delimiter);
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (!found) throw new Error(`${name} is not on PATH`);
  return found;
}
