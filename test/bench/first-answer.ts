import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finish } from '../e2e/support/cluster.ts';
import type { Figure } from './figures.ts';
import { packedTarball } from './packaged.ts';
import { count } from './settings.ts';
import { spread } from './table.ts';
import { took } from './took.ts';

const SAMPLES = count(5, 1);
const STEPS = ['npm install of the package', 'berth local up', 'berth run of an own agent'] as const;

/** Time from an empty folder and the npm package to the first answer of an own agent on the embedded cluster. */
export async function firstAnswer(): Promise<Figure[]> {
  const tarball = await packedTarball();
  const values: Record<(typeof STEPS)[number] | 'all', number[]> = {
    'npm install of the package': [],
    'berth local up': [],
    'berth run of an own agent': [],
    all: [],
  };
  for (let i = 0; i < SAMPLES; i++) {
    const root = mkdtempSync(join(tmpdir(), 'berth-bench-'));
    const folder = join(root, 'project');
    const env = { HOME: join(root, 'home') };
    for (const made of [folder, env.HOME]) mkdirSync(made);
    const berth = join(folder, 'node_modules/.bin/berth');
    const commands: Record<(typeof STEPS)[number], [string, string[]]> = {
      'npm install of the package': ['npm', ['install', '--offline', '--no-audit', '--no-fund', tarball]],
      'berth local up': [berth, ['local', 'up', '--detach']],
      'berth run of an own agent': [berth, ['run', '--text', 'hello', '--result', 'text', '--', 'cat']],
    };
    try {
      let sum = 0;
      for (const step of STEPS) {
        const [file, args] = commands[step];
        const ms = await took(async () => {
          const { code, stderr } = await finish(file, args, { cwd: folder, env });
          if (code !== 0) throw new Error(`${step} ended with ${code}: ${stderr.slice(-500)}`);
        });
        values[step].push(ms / 1000);
        sum += ms / 1000;
      }
      values.all.push(sum);
    } finally {
      await finish(berth, ['local', 'down'], { cwd: folder, env }).catch(() => {});
      rmSync(root, { recursive: true, force: true, maxRetries: 10 });
    }
  }
  const what = 'from an empty folder and the npm package to the first answer of an own agent';
  const steps = STEPS.map((step) => `${step}: ${spread(values[step], 's', true)}`).join('<br>');
  return [{ what, measured: spread(values.all, 's', true), beside: steps, values }];
}
