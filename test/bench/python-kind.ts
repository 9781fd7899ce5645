/** Python environments on a real cluster: from a file of requirements to the first answer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apply, berth, remove } from '../e2e/support/cluster.ts';
import { startIndex } from '../e2e/support/package-index.ts';
import { EXAMPLE_WHEELS, PYTHON_EXAMPLE } from '../support/python-example.ts';
import { compared, type Figure } from './figures.ts';
import { count } from './settings.ts';

const SAMPLES = count(5, 1);
const INPUT = JSON.stringify({ what: 'dentist', when: '3 March 2027, 2:30 pm' });

/** `berth run` with packages from a small index in the cluster, beside a program without packages. */
export async function pythonOnKind(namespace: string): Promise<Figure[]> {
  const settings = await startIndex(namespace, EXAMPLE_WHEELS);
  const name = `${namespace}-python`;
  const overrides = ['agent.command', 'agent.args', 'agent.files', 'agent.input', 'agent.result', 'environment'];
  const resources = { limits: { memory: '512Mi' } };
  await apply({
    ...{ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata: { name } },
    spec: { runnerImage: 'Python', overrides, resources, ...settings },
  });
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const values: Record<'first' | 'again' | 'plain', number[]> = { first: [], again: [], plain: [] };
  const run = async (...args: string[]) => {
    const started = performance.now();
    const ended = await berth(['-n', namespace, 'run', '--class', name, ...args], { cwd: PYTHON_EXAMPLE });
    if (ended.code !== 0) throw new Error(`berth run ${args.join(' ')}: ${ended.stderr}`);
    return performance.now() - started;
  };
  try {
    for (let i = 0; i <= SAMPLES; i++) {
      // A list of its own, so that nothing is built for it yet.
      const file = join(folder, `${i}.txt`);
      writeFileSync(file, `humanize >=4.9,<5.${i}\npython-dateutil >=2.9,<3\n`);
      const flags = ['--with', 'agent.py', '--requirements', file, '--input', INPUT, '--', 'python3', 'agent.py'];
      const [first, again] = [await run(...flags), await run(...flags)];
      const plain = await run('--result', 'text', '--input', '1', '--', 'python3', '-c', 'print(1)');
      // The first one warms caches on every side.
      if (i === 0) continue;
      values.first.push(first);
      values.again.push(again);
      values.plain.push(plain);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await remove('sessionclass', name);
  }
  const beside = { what: 'a program without files and packages', values: values.plain };
  const what = 'berth run --with agent.py --requirements FILE on kind';
  return [compared(`${what}, first time`, values.first, beside), compared(`${what}, again`, values.again, beside)];
}
