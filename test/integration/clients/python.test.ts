import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { sessionclasses } from '../../../core/resources/kinds.ts';
import { buildWheel } from '../../../package/wheel.ts';
import { pythonSync } from '../../../scripts/python-sync.ts';
import { machineIndex } from '../../support/machine-index.ts';
import { makeEnvironment, noPythonTools, PYTHON_CLIENT, pythonTools } from '../../support/python-tools.ts';
import { skipIf } from '../../support/requires.ts';
import { ApiCluster } from '../api/support.ts';

const ROOT = join(import.meta.dirname, '../../..');
const AGENT = join(PYTHON_CLIENT, 'tests/real/agent.py');
const RUN_MS = 300_000;
const RIGHTS = [{ verbs: ['create', 'get', 'list', 'patch', 'delete'], resources: ['sessions', 'turns', 'approvals'] }];

/** Runs a program that has to succeed; its output is the error of one that does not. */
function succeeds(program: string, args: string[], { cwd, env = {} }: { cwd: string; env?: Record<string, string> }) {
  // pyright runs on the Node of this process. Nothing is written beside the sources.
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  const whole = { HOME: cwd, PYTHONDONTWRITEBYTECODE: '1', ...env, PATH: path };
  return new Promise<string>((resolve, reject) => {
    execFile(program, args, { cwd, env: whole, timeout: RUN_MS, maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      error ? reject(new Error(`${program} ${args.join(' ')}: ${error.code}\n${stdout}${stderr}`)) : resolve(stdout),
    );
  });
}

/** The programs that the README shows. */
const programs = [...readFileSync(join(PYTHON_CLIENT, 'README.md'), 'utf8').matchAll(/```python\n(.*?)```/gs)].map(
  ([, program]) => program as string,
);

describe('the Python client', { concurrent: true, ...skipIf(await noPythonTools()) }, () => {
  let folder: string;
  let python: string;
  let api: ApiCluster;
  let env: Record<string, string>;

  beforeAll(async () => {
    python = await pythonTools();
    folder = await mkdtemp(join(tmpdir(), 'berth-python-client-'));
    api = await ApiCluster.start();
    api.cluster.startController();
    const agent = { command: ['python3', AGENT] };
    await api.cluster.client.patch(sessionclasses, { name: 'default' }, { spec: { agent } });
    env = await reached(api, 'token');
    // The tests of the async half, and those of the sync half that are made of them.
    await cp(join(PYTHON_CLIENT, 'tests'), join(folder, 'async/tests'), { recursive: true });
    for (const place of ['tests', 'tests/real']) {
      const target = join(folder, 'sync', place);
      await mkdir(target, { recursive: true });
      for (const name of await readdir(join(PYTHON_CLIENT, place))) {
        if (!name.endsWith('.py') || name.endsWith('_async.py')) continue;
        const source = await readFile(join(PYTHON_CLIENT, place, name), 'utf8');
        await writeFile(join(target, name), pythonSync(source, name));
      }
    }
  });
  afterAll(async () => {
    await api?.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** Writes a user's token into a file; resolves with the environment in which a client finds the API. */
  async function reached(server: ApiCluster, name: string): Promise<Record<string, string>> {
    const tokenFile = join(folder, name);
    await writeFile(tokenFile, (await server.user(RIGHTS)).token);
    return { BERTH_SERVER: server.url, BERTH_TOKEN_FILE: tokenFile };
  }

  const pytest = (half: string, paths: string[], more: Record<string, string> = {}) =>
    succeeds(python, ['-m', 'pytest', '-q', '-W', 'error', '-p', 'no:cacheprovider', ...paths], {
      cwd: join(folder, half),
      env: { PYTHONPATH: `${join(PYTHON_CLIENT, 'src')}:.`, ...more },
    });

  test('it is strictly typed for mypy, and so are programs that use it', async () => {
    const shown = programs.map((_, at) => join(folder, 'shown', `program_${at}.py`));
    await mkdir(join(folder, 'shown'));
    await Promise.all(shown.map((path, at) => writeFile(path, programs[at] as string)));
    const files = ['src/berth_client', 'berth_agent.py', 'tests/real/test_real.py', ...shown];
    const args = ['-m', 'mypy', '--strict', '--cache-dir', join(folder, 'mypy'), ...files];
    await succeeds(python, args, { cwd: PYTHON_CLIENT, env: { MYPYPATH: 'src' } });
  });

  test('it is strictly typed for pyright', async () => {
    const project = ['--project', PYTHON_CLIENT, '--pythonpath', python];
    await succeeds(python, ['-m', 'pyright', ...project], { cwd: folder });
  });

  for (const half of ['async', 'sync']) {
    test(`its ${half} half stands every fault`, async () => {
      await pytest(half, ['tests', '--ignore', 'tests/real']);
    });

    test(`its ${half} half runs, follows, approves and downloads`, async () => {
      await pytest(half, ['tests/real'], { ...env, AGENT });
    });
  }

  test('its wheel is installed from its file, and runs the programs of the README one after the other', async (t) => {
    const wheel = await buildWheel(ROOT, join(folder, 'dist'), await machineIndex());
    const installed = join(folder, 'installed');
    await makeEnvironment(installed, ['-c', join(PYTHON_CLIENT, 'tests/requirements.txt'), wheel]);
    const program = join(installed, 'bin/python');
    // As on a new cluster: no class has a command.
    const fresh = await ApiCluster.start();
    t.onTestFinished(() => fresh.close());
    fresh.cluster.startController();
    const where = await reached(fresh, 'fresh-token');
    const cwd = join(folder, 'shown-files');
    await mkdir(cwd);
    const said: string[] = [];
    for (const shown of programs) said.push(await succeeds(program, ['-W', 'error', '-c', shown], { cwd, env: where }));
    const digest = createHash('sha256').update('first').digest('hex');
    const ended = said[2]?.split('\n').slice(-2);
    assert.deepEqual(ended, ['Succeeded', '']);
    assert.deepEqual(said.toSpliced(2, 1), [
      'SIX BY SEVEN\n',
      'FIRST\nSECOND\n',
      '',
      `asked.txt 5 ${digest}\n`,
      'PAID\n',
    ]);
    assert.equal(await readFile(join(cwd, 'asked.txt'), 'utf8'), 'first');
    const agent = 'import berth_client.agent as agent; print(agent.__all__)';
    assert.match(await succeeds(program, ['-c', agent], { cwd: folder }), /approve/);
  });
});
