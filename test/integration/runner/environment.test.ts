import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { zstdCompressSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { uvProgram } from '../../../images/uv.ts';
import { binOf, EnvironmentMismatchError, unpackEnvironment } from '../../../runner/environment/environment.ts';
import { packDirectory } from '../../../runner/state/pack.ts';
import { LOOPBACK_CERTIFICATE, LOOPBACK_KEY } from '../../support/loopback-certificate.ts';
import { PackageIndex, type Wheel, wheelFile } from '../../support/package-index.ts';

const run = promisify(execFile);
const BUILDER = join(import.meta.dirname, '../../../runner/environment/build.py');
const PATH = process.env.PATH ?? '/usr/bin:/bin';
const LOUD = { name: 'shout', version: '1.2', files: { 'shout.py': 'def loud(text):\n    return text.upper()\n' } };
const GREETING = {
  name: 'greeting',
  version: '1.0',
  files: { 'greeting/__init__.py': 'from shout import loud\n\ndef hello():\n    print(loud("hello"))\n' },
  requires: ['shout>=1'],
  scripts: { greet: 'greeting:hello' },
};

describe('a Python environment', () => {
  let folder: string;
  let state: string;
  let index: PackageIndex;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'berth-environment-'));
    state = join(folder, 'state');
    mkdirSync(state);
    index = (await PackageIndex.start()).add(LOUD, GREETING);
  });
  afterEach(async () => {
    await index.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs the builder as the agent of a turn; resolves with its envelope and what it has said. */
  async function build(
    input: object,
    options: { uv?: string; env?: Record<string, string>; flags?: string[] } = {},
  ): Promise<{ envelope: Envelope; said: string }> {
    const env = {
      ...{ PATH, TMPDIR: folder, HOME: folder, BERTH_STATE_DIR: state, ...options.env },
      ...{ BERTH_RESULT_START_MARKER: '<<<', BERTH_RESULT_END_MARKER: '>>>' },
    };
    const uv = options.uv ?? (await uvProgram());
    const args = ['-I', BUILDER, '--uv', uv, '--index', index.url, ...(options.flags ?? [])];
    const finished = run('python3', args, { env, timeout: 120_000 });
    finished.child.stdin?.end(`${JSON.stringify({ input })}\n`);
    const { stdout, stderr } = await finished;
    return { envelope: JSON.parse(/<<<(.*)>>>/s.exec(stdout)?.[1] ?? 'null'), said: stderr };
  }

  /** Packs what was built and unpacks it somewhere else. */
  async function moved(): Promise<string> {
    const target = join(folder, 'elsewhere');
    await unpackEnvironment(target, await packDirectory(state), PATH);
    return target;
  }

  test('is built from an index, and works where it is unpacked with the interpreter that is found there', async () => {
    const { envelope, said } = await build({ requirements: ['greeting ==1.0'] });
    assert.equal(envelope.status, 'success', JSON.stringify(envelope));
    assert.deepEqual(envelope.output?.packages, [
      { name: 'greeting', version: '1.0', hashes: [hashOf(GREETING)] },
      { name: 'shout', version: '1.2', hashes: [hashOf(LOUD)] },
    ]);
    assert.match(said, /resolving 1 requirements\ninstalling\ncompiling\n2 packages/);
    assert.match(readFileSync(join(state, 'pylock.toml'), 'utf8'), /^name = "greeting"$/m);

    const directory = await moved();
    rmSync(state, { recursive: true });
    const bin = binOf(directory);
    const env = { PATH: `${bin}:${PATH}` };
    assert.equal((await run('greet', [], { env })).stdout, 'HELLO\n');
    const program = 'import greeting, sys; greeting.hello(); print(sys.prefix != sys.base_prefix, greeting.__cached__)';
    const [hello, isVenv = ''] = (await run('python', ['-c', program], { env })).stdout.split('\n');
    assert.equal(hello, 'HELLO');
    const [prefix, compiled = ''] = isVenv.split(' ');
    assert.equal(prefix, 'True');
    assert.ok(statSync(compiled).size > 0, 'the compiled file came along');
    assert.equal(statSync(join(directory, 'venv/lib')).mode & 0o222, 0o200);
  });

  test('is built again with exactly the packages of its lock, also where newer ones have come', async () => {
    const first = await build({ requirements: ['greeting'] });
    const requirements = first.envelope.output?.packages.map(
      ({ name, version, hashes }) => `${name}==${version} ${hashes?.map((hash) => `--hash=${hash}`).join(' ')}`,
    );
    index.add({ ...LOUD, version: '2.0' });
    const again = await build({ requirements, locked: true });
    assert.deepEqual(again.envelope.output?.packages, first.envelope.output?.packages, JSON.stringify(again.envelope));
    assert.doesNotMatch(again.said, /resolving/);
    const fresh = await build({ requirements: ['greeting'] });
    assert.ok(fresh.envelope.output?.packages.some(({ version }) => version === '2.0'));
  });

  test('whose locked package is another file by now is refused', async () => {
    const requirements = [`shout==1.2 --hash=sha256:${'a'.repeat(64)}`];
    const { envelope } = await build({ requirements, locked: true });
    assert.equal(envelope.metadata?.code, 'HashMismatch', JSON.stringify(envelope));
  });

  test('has a package only by a digest that its requirement names, however the name is written and whatever else the index has', async () => {
    index.add({ ...LOUD, python: 'py2.py3' });
    const wrong = `sha256:${'0'.repeat(64)}`;
    const right = hashOf(LOUD);
    const sha512 = createHash('sha512').update(wheelFile(GREETING).data).digest('hex');
    for (const requirement of ['Shout==1.2', 'SHOUT >=1', "shout==1.2 ; python_version > '3'"]) {
      const refused = await build({ requirements: ['greeting', `${requirement} --hash=${wrong}`] });
      assert.equal(refused.envelope.metadata?.code, 'HashMismatch', JSON.stringify(refused.envelope));
      assert.match(String(refused.envelope.error), /^shout: no file .*they name sha256:0{64}, the index has sha256:/);
      const { envelope } = await build({
        requirements: ['greeting', `${requirement} --hash=${wrong} --hash=${right}`],
      });
      const shout = envelope.output?.packages.find(({ name }) => name === 'shout');
      assert.deepEqual(shout?.hashes, [right], JSON.stringify(envelope));
    }
    // The index names no digests of this kind: uv compares the file.
    const other = await build({ requirements: [`greeting --hash=sha512:${sha512}`] });
    assert.equal(other.envelope.status, 'success', JSON.stringify(other.envelope));
    const none = await build({ requirements: [`greeting --hash=sha512:${'0'.repeat(128)}`] });
    assert.equal(none.envelope.metadata?.code, 'HashMismatch', JSON.stringify(none.envelope));
  });

  test('has packages built from source only where the class allows it', async () => {
    await index.addSource({ name: 'raw', version: '1', files: { 'raw.py': 'TEXT = "made here"\n' } });
    const refused = await build({ requirements: ['raw'] });
    assert.equal(refused.envelope.metadata?.code, 'Unsolvable', JSON.stringify(refused.envelope));
    const { envelope } = await build({ requirements: ['raw'] }, { flags: ['--source-distributions'] });
    assert.equal(envelope.status, 'success', JSON.stringify(envelope));
    const env = { PATH: `${binOf(await moved())}:${PATH}` };
    assert.equal((await run('python', ['-c', 'import raw; print(raw.TEXT)'], { env })).stdout, 'made here\n');
  });

  test('downloads nothing twice with a cache', async () => {
    const flags = ['--cache', join(folder, 'cache')];
    const downloads: number[] = [];
    for (let i = 0; i < 2; i++) {
      index.asked.length = 0;
      const { envelope } = await build({ requirements: ['greeting'] }, { flags });
      assert.equal(envelope.status, 'success', JSON.stringify(envelope));
      downloads.push(new Set(index.asked.filter((path) => path.endsWith('.whl'))).size);
    }
    assert.deepEqual(downloads, [2, 0]);
  });

  test('has every file of its packages, whatever their names and number', async () => {
    const many = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`many/f${i}.txt`, String(i)]));
    const odd = { 'many/a b.txt': '1', 'many/-rf': '2' };
    index.add({ name: 'many', version: '1', files: { ...many, ...odd, 'many/__init__.py': '' } });
    const { envelope } = await build({ requirements: ['many'] });
    assert.equal(envelope.status, 'success', JSON.stringify(envelope));
    const program = 'import many, os; print(len(os.listdir(os.path.dirname(many.__file__))))';
    const env = { PATH: `${binOf(await moved())}:${PATH}` };
    // The folder also holds __init__.py and the folder of compiled files.
    assert.equal((await run('python', ['-c', program], { env })).stdout, `${3000 + 2 + 2}\n`);
  });

  test('without a package is an environment too', async () => {
    const { envelope } = await build({ requirements: [] });
    assert.deepEqual(envelope.output?.packages, [], JSON.stringify(envelope));
    const env = { PATH: `${binOf(await moved())}:${PATH}` };
    assert.equal((await run('python3', ['-c', 'print(1)'], { env })).stdout, '1\n');
  });

  test('that cannot be solved fails with the words of the resolver', async () => {
    const { envelope } = await build({ requirements: ['greeting', 'shout<1'] });
    assert.equal(envelope.metadata?.code, 'Unsolvable');
    assert.match(String(envelope.error), /shout/);
    const missing = await build({ requirements: ['no-such-package'] });
    assert.equal(missing.envelope.metadata?.code, 'Unsolvable');
  });

  test('of which no wheel is for this Python cannot be solved', async () => {
    index.add({ name: 'old', version: '1', files: { 'old.py': '' }, python: 'cp27' });
    assert.equal((await build({ requirements: ['old'] })).envelope.metadata?.code, 'Unsolvable');
  });

  test('whose index refuses, fails, hangs or is gone is told apart', async () => {
    for (const [status, code] of [
      [401, 'IndexRefused'],
      [403, 'IndexRefused'],
      [502, 'IndexUnreachable'],
    ] as const) {
      index.instead = { status };
      const { envelope } = await build({ requirements: ['greeting'] }, { env: { UV_HTTP_RETRIES: '0' } });
      assert.equal(envelope.metadata?.code, code, `${status}: ${envelope.error}`);
    }
    index.instead = 'hang';
    const env = { UV_HTTP_RETRIES: '0', UV_HTTP_TIMEOUT: '1' };
    const hangs = await build({ requirements: ['greeting'] }, { env });
    assert.equal(hangs.envelope.metadata?.code, 'IndexUnreachable', hangs.envelope.error);
    await index.close();
    const gone = await build({ requirements: ['greeting'] }, { env });
    assert.equal(gone.envelope.metadata?.code, 'IndexUnreachable', gone.envelope.error);
  });

  test('whose index lies about a digest is refused', async () => {
    index.liesAbout = 'a'.repeat(64);
    const { envelope } = await build({ requirements: ['greeting'] });
    assert.equal(envelope.metadata?.code, 'HashMismatch', JSON.stringify(envelope));
  });

  test('whose index answers with a page of another kind fails in clear words', async () => {
    index.instead = { status: 200, text: '<html><body>Please log in</body></html>' };
    const { envelope } = await build({ requirements: ['greeting'] });
    assert.equal(envelope.metadata?.code, 'Unsolvable', JSON.stringify(envelope));
  });

  test('asks the index with the credentials, and tells nobody', async () => {
    const env = { UV_INDEX_BERTH_USERNAME: 'ann', UV_INDEX_BERTH_PASSWORD: 'hunter2hunter2' };
    index.instead = { status: 401 };
    const refused = await build({ requirements: ['greeting'] }, { env });
    assert.doesNotMatch(JSON.stringify(refused), /hunter2/);
    assert.ok(index.authorizations.includes(`Basic ${Buffer.from('ann:hunter2hunter2').toString('base64')}`));
    index.instead = undefined;
    const built = await build({ requirements: ['greeting'] }, { env });
    assert.equal(built.envelope.status, 'success', JSON.stringify(built.envelope));
    assert.doesNotMatch(JSON.stringify(built), /hunter2/);
    const found = await run('grep', ['-r', '-l', 'hunter2', folder]).catch(({ code }: { code: number }) => code);
    assert.equal(found, 1, 'no file of the build has the password');
  });

  test('keeps the credentials from the code of packages, which runs when an interpreter starts with them', async () => {
    const spy = [
      'import os, glob',
      `out = open(${JSON.stringify(join(folder, 'seen'))}, "ab")`,
      'parents = ["/proc/self/environ", "/proc/%d/environ" % os.getppid()]',
      '[out.write(open(path, "rb").read()) for path in parents]',
    ].join('; ');
    index.add({ name: 'spy', version: '1', files: { 'spy.pth': `import os; exec(${JSON.stringify(spy)}, {})\n` } });
    const env = { UV_INDEX_BERTH_USERNAME: 'ann', UV_INDEX_BERTH_PASSWORD: 'hunter2hunter2' };
    const { envelope } = await build({ requirements: ['spy'] }, { env });
    assert.equal(envelope.status, 'success', JSON.stringify(envelope));
    const seen = readFileSync(join(folder, 'seen'), 'utf8');
    assert.match(seen, /BERTH_STATE_DIR/);
    assert.doesNotMatch(seen, /hunter2/);
  });

  test('is judged by what uv says and not by the names of packages', async () => {
    for (const requirement of ['async-timeout>=99', 'pytest-certificate', 'evil==403.1', 'tcp-connect']) {
      const { envelope } = await build({ requirements: [requirement] });
      assert.equal(envelope.metadata?.code, 'Unsolvable', `${requirement}: ${envelope.error}`);
    }
  });

  test('trusts the certificates of the class besides those of the image, and no others', async () => {
    const http = index;
    index = (await PackageIndex.start({ key: LOOPBACK_KEY, cert: LOOPBACK_CERTIFICATE })).add(LOUD);
    await http.close();
    const refused = await build({ requirements: ['shout'] }, { env: { UV_HTTP_RETRIES: '0' } });
    assert.equal(refused.envelope.metadata?.code, 'IndexUnreachable', refused.envelope.error);
    assert.match(String(refused.envelope.error), /certificate/);
    const env = { UV_INDEX_BERTH_CERTIFICATES: LOOPBACK_CERTIFICATE };
    const { envelope } = await build({ requirements: ['shout'] }, { env });
    assert.deepEqual(
      envelope.output?.packages,
      [{ name: 'shout', version: '1.2', hashes: [hashOf(LOUD)] }],
      JSON.stringify(envelope),
    );
  });

  test('with anything but requirements in its input is refused before uv runs', async () => {
    for (const requirement of [
      '-r /etc/hostname',
      '-e .',
      'x @ file:///etc/passwd',
      ['$', '{HOME}'].join(''),
      'a\n-r /etc/hostname',
      'shout-1.2-py3-none-any.whl',
      'shout-1.2.tar.gz',
      3,
    ]) {
      const { envelope } = await build({ requirements: [requirement] }, { uv: '/nowhere' });
      assert.equal(envelope.metadata?.code, 'RequirementInvalid', String(requirement));
    }
    assert.equal((await build({}, { uv: '/nowhere' })).envelope.metadata?.code, 'RequirementInvalid');
  });

  test('for a Python that the image has not is refused, and so is a machine without uv', async () => {
    const { envelope } = await build({ requirements: [], python: '3.1' });
    assert.equal(envelope.metadata?.code, 'PythonMissing');
    assert.match(String(envelope.error), /^spec\.python: the image has Python 3\.\d+\.\d+\S* and not 3\.1;/);
    const none = await build({ requirements: [] }, { uv: '/nowhere/uv' });
    assert.equal(none.envelope.metadata?.code, 'UvMissing');
    assert.match(String(none.envelope.error), /pip install uv/);
  });

  describe('does not enter its place', () => {
    const target = () => join(folder, 'elsewhere');
    /** An archive of these entries, with the manifest of this machine's Python. */
    async function archive(entries: Entry[], facts: object = {}): Promise<{ packed: Buffer; digest: string }> {
      const { envelope } = await build({ requirements: [] });
      const tar = pack();
      const manifest = JSON.stringify({ ...envelope.output, ...facts });
      tar.entry({ name: 'manifest.json' }, manifest);
      for (const name of ['venv', 'venv/bin']) tar.entry({ name, type: 'directory' });
      for (const { content = '', ...header } of entries) tar.entry(header, content);
      tar.finalize();
      const pieces: Buffer[] = [];
      for await (const piece of tar as AsyncIterable<Buffer>) pieces.push(piece);
      const plain = Buffer.concat(pieces);
      return { packed: zstdCompressSync(plain), digest: createHash('sha256').update(plain).digest('hex') };
    }

    test.for([
      ['a path that leads out', { name: '../out' }],
      ['an absolute path', { name: '/tmp/berth-out' }],
      ['a link that leads out', { name: 'venv/x', type: 'symlink', linkname: '../../out' }],
      ['an absolute link', { name: 'venv/x', type: 'symlink', linkname: '/etc/passwd' }],
      ['a file below a link', { name: 'venv/x', type: 'symlink', linkname: 'bin' }, { name: 'venv/x/y' }],
      ['a file below a link to itself', { name: 'venv/x', type: 'symlink', linkname: 'x' }, { name: 'venv/x/y' }],
      ['a path twice', { name: 'venv/a' }, { name: 'venv/a' }],
    ] as [string, ...Entry[]][])('with %s', async ([, ...entries]) => {
      await assert.rejects(unpackEnvironment(target(), await archive(entries), PATH), /the environment holds/);
      assert.throws(() => statSync(target()));
    });

    test('with a bomb of zeros, a part that is missing, another digest', async () => {
      const bomb = await archive([{ name: 'venv/zeros', content: '\0'.repeat(510 * 1024 * 1024) }, ...THREE_MIB]);
      assert.ok(bomb.packed.length < 1024 * 1024);
      await assert.rejects(unpackEnvironment(target(), bomb, PATH), /larger than 536870912 bytes/);
      const whole = await archive([]);
      const cut = { ...whole, packed: whole.packed.subarray(0, whole.packed.length / 2) };
      await assert.rejects(unpackEnvironment(target(), cut, PATH));
      await assert.rejects(unpackEnvironment(target(), { ...whole, digest: '0'.repeat(64) }, PATH), /digest/);
      assert.throws(() => statSync(target()));
    });

    test('in an image with another Python, or none', async () => {
      const other = await archive([], { python: '3.1.0', libc: 'musl' });
      await assert.rejects(
        unpackEnvironment(target(), other, PATH),
        (error: Error) =>
          error instanceof EnvironmentMismatchError &&
          /built for Python 3\.1, the image has 3\.\d+; libc musl, the image has glibc/.test(error.message),
      );
      const empty = join(folder, 'empty');
      mkdirSync(empty);
      await assert.rejects(unpackEnvironment(target(), other, empty), /there is no python3 on its PATH/);
      symlinkSync('/bin/false', join(empty, 'python3'));
      await assert.rejects(unpackEnvironment(target(), other, empty), /no Python that can be asked/);
    });
  });
});

const THREE_MIB = ['a', 'b', 'c'].map((name) => ({ name: `venv/${name}`, content: '\0'.repeat(1024 * 1024) }));

const hashOf = (wheel: Wheel) => `sha256:${createHash('sha256').update(wheelFile(wheel).data).digest('hex')}`;

interface Envelope {
  status: string;
  output?: { packages: { name: string; version: string; hashes?: string[] }[] };
  error?: string;
  metadata?: { code: string };
}

interface Entry {
  name: string;
  type?: 'file' | 'directory' | 'symlink';
  linkname?: string;
  content?: string;
}
