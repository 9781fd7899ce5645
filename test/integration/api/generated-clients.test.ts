import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { sessionclasses } from '../../../core/resources/kinds.ts';
import { generators, noGenerators } from '../../support/generators.ts';
import { skipIf } from '../../support/requires.ts';
import { ApiCluster } from './support.ts';

/** Resolves with what a program prints. Rejects with all that it has said. */
async function run(
  program: string,
  args: string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<string> {
  try {
    return (await promisify(execFile)(program, args, options)).stdout;
  } catch (error) {
    const { message, stdout } = error as Error & { stdout?: string };
    throw new Error(`${message}\n${stdout}`);
  }
}

const ROOT = join(import.meta.dirname, '../../..');
const SOURCES = join(ROOT, 'test/generated-clients');
const DOCUMENT = join(ROOT, 'docs/reference/openapi.json');

/** What both smoke runs print. */
const EXPECTED = {
  phase: 'Succeeded',
  output: 'hello',
  artifact: 'kept\n',
  suspend: true,
  listed: true,
  refused: 'NotFound',
  deleted: 204,
};

describe.concurrent(
  'a client that a generator has made of the document compiles strictly and can be used',
  skipIf(noGenerators),
  () => {
    let api: ApiCluster;
    let env: NodeJS.ProcessEnv;
    const folder = mkdtempSync(join(tmpdir(), 'berth-generated-clients-'));
    const inFolder = { cwd: folder };
    beforeAll(async () => {
      cpSync(SOURCES, folder, { recursive: true });
      api = await ApiCluster.start();
      api.cluster.startController();
      const command = ['sh', '-c', 'echo kept > "$BERTH_OUTPUT_DIR/file.txt"; cat'];
      const echo = { metadata: { name: 'echo' }, spec: { agent: { command, input: 'Text', result: 'Text' } } };
      await api.cluster.client.create(sessionclasses, echo as never);
      const { token } = await api.user([{ verbs: ['*'], resources: ['sessions', 'turns'] }]);
      env = { PATH: process.env.PATH, API: api.url, TOKEN: token };
    });
    afterAll(async () => {
      await api?.close();
      rmSync(folder, { recursive: true });
    });

    test('by openapi-typescript', async () => {
      const modules = join(await generators(), 'node_modules');
      const tool = (path: string, ...args: string[]) => run(process.execPath, [join(modules, path), ...args], inFolder);
      symlinkSync(modules, join(folder, 'node_modules'));
      await tool('openapi-typescript/bin/cli.js', DOCUMENT, '--output', 'api.ts');
      await tool('typescript/bin/tsc', '--project', '.');
      const stdout = await run(process.execPath, ['smoke.ts'], { ...inFolder, env });
      assert.deepEqual(JSON.parse(stdout), EXPECTED);
    });

    test('by openapi-python-client', async () => {
      const programs = join(await generators(), 'venv/bin');
      const tool = (name: string, ...args: string[]) => run(join(programs, name), args, inFolder);
      const from = ['--path', DOCUMENT, '--config', 'openapi-python-client.yaml'];
      const to = ['--meta', 'none', '--output-path', 'berth_generated'];
      await tool('openapi-python-client', 'generate', ...from, ...to, '--fail-on-warning');
      await tool('mypy', '--strict', 'smoke.py', 'berth_generated');
      const stdout = await run(join(programs, 'python'), ['-W', 'error', 'smoke.py'], { ...inFolder, env });
      assert.deepEqual(JSON.parse(stdout), EXPECTED);
    });
  },
);
