import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';
import { OLDEST_SUPPORTED } from '../../core/kube/server-version.ts';
import { REQUIRED } from '../support/chart.ts';
import { commands } from '../support/pages.ts';
import { tools } from '../support/tools.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..');
const { major, minor } = OLDEST_SUPPORTED;

/** Text that the first group of `pattern` matches in a file of the checkout. */
async function inFile(file: string, pattern: RegExp): Promise<string | undefined> {
  return pattern.exec(await readFile(join(CHECKOUT, file), 'utf8'))?.[1];
}

async function template(...args: string[]): Promise<string> {
  const { helm } = await tools();
  const chart = join(CHECKOUT, 'charts', 'berth');
  const required = REQUIRED.flatMap((value) => ['--set', value]);
  // Helm reads a kubeconfig only to install; an unusable one proves it.
  const env = { ...process.env, KUBECONFIG: '/dev/null' };
  const options = { env, maxBuffer: 16 * 1024 * 1024 };
  return (await promisify(execFile)(helm, ['template', chart, ...required, ...args], options)).stdout;
}

describe('the oldest Kubernetes version', () => {
  test('is the one that the programs, the chart, the documentation and the cluster of the tests name', async () => {
    const oldest = `${major}.${minor}`;
    assert.deepEqual(
      {
        chart: await inFile('charts/berth/Chart.yaml', /^kubeVersion: ">=(\d+\.\d+)\.0-0"$/m),
        install: await inFile('docs/install.md', /^You need Kubernetes (\d+\.\d+) or newer/m),
        decision: await inFile('docs/decisions/kubernetes-versions.md', /^# Kubernetes (\d+\.\d+) and newer$/m),
        cluster: await inFile('test/cluster/oldest/kubernetes/go.mod', /^\tk8s\.io\/kubernetes v(\d+\.\d+)\./m),
      },
      { chart: oldest, install: oldest, decision: oldest, cluster: oldest },
    );
  });

  test('is one that helm template takes without --kube-version', async () => {
    assert.match(await template(), /^kind: Deployment$/m);
  });

  test('is what docs/install.md has helm template render for, by its own command', async () => {
    const [command] = commands('docs/install.md').filter(({ typed }) => typed.startsWith('helm template '));
    assert.ok(command, 'docs/install.md has the command');
    const { helm } = await tools();
    const run = `PATH="$(dirname ${helm}):$PATH" && ${command.typed}`;
    const options = { cwd: CHECKOUT, env: { ...process.env, KUBECONFIG: '/dev/null' }, maxBuffer: 16 * 1024 * 1024 };
    const { stdout } = await promisify(execFile)('sh', ['-c', run], options);
    assert.match(stdout, /^kind: Deployment$/m);
    assert.ok(command.typed.endsWith(`--kube-version ${major}.${minor}`), command.typed);
  });

  test('is the first that the chart takes', async () => {
    assert.match(await template('--kube-version', `${major}.${minor}.0`), /^kind: Deployment$/m);
    await assert.rejects(template('--kube-version', `${major}.${minor - 1}.99`), /chart requires kubeVersion/);
  });
});
