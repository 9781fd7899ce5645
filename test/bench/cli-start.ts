import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finish } from '../e2e/support/cluster.ts';
import { tools } from '../support/tools.ts';
import { compared, type Figure } from './figures.ts';
import { packagedBerth } from './packaged.ts';
import { SAMPLES } from './settings.ts';
import { took } from './took.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..');

/** Start of the command line as whole processes, on the embedded cluster: of the npm package, and of the checkout. */
export async function cliStarts(): Promise<Figure[]> {
  const berth = await packagedBerth();
  const { kubectl } = await tools();
  const home = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const env = { HOME: home, BERTH_HOME: join(home, 'berth'), KUBECONFIG: join(home, 'berth/kubeconfig') };
  const run = async (file: string, ...args: string[]) => {
    const { code, stderr } = await finish(file, args, { env });
    if (code !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr}`);
  };
  const each = {
    'node -e 0': () => run(process.execPath, '-e', '0'),
    'kubectl get sessions': () => run(kubectl, 'get', 'sessions'),
    'berth version --client': () => run(berth, 'version', '--client'),
    'berth list': () => run(berth, 'list'),
    'berth list of the checkout': () => run(join(CHECKOUT, 'bin/berth'), 'list'),
  };
  type Name = keyof typeof each;
  const values = new Map<Name, number[]>();
  try {
    await run(berth, 'local', 'up', '--detach');
    await run(berth, 'create', 'notes', '--', 'cat');
    // The first of each warms caches.
    for (let i = -1; i < SAMPLES; i++) {
      for (const [name, work] of Object.entries(each) as [Name, () => Promise<void>][]) {
        const ms = await took(work);
        if (i >= 0) values.set(name, [...(values.get(name) ?? []), ms]);
      }
    }
  } finally {
    await run(berth, 'local', 'down');
    rmSync(home, { recursive: true, force: true, maxRetries: 10 });
  }
  const beside = (name: Name, other: Name) =>
    compared(`${name}, whole process`, values.get(name) ?? [], { what: other, values: values.get(other) ?? [] });
  return [
    beside('berth version --client', 'node -e 0'),
    beside('berth list', 'node -e 0'),
    beside('berth list', 'kubectl get sessions'),
    beside('berth list of the checkout', 'kubectl get sessions'),
  ];
}
