/** Python environments without Kubernetes: building, unpacking, and the first answer on the embedded cluster. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { zstdDecompressSync } from 'node:zlib';
import type { SessionClass } from '../../core/resources/kinds.ts';
import { sessionclasses } from '../../core/resources/kinds.ts';
import { MAX_ENVIRONMENT_BYTES } from '../../core/resources/limits.ts';
import { uvProgram } from '../../images/uv.ts';
import { unpackEnvironment } from '../../runner/environment/environment.ts';
import { packDirectory } from '../../runner/state/pack.ts';
import { Caller } from '../integration/cli/support.ts';
import { Installation } from '../support/installation.ts';
import { machineIndex, unreachable } from '../support/machine-index.ts';
import { PackageIndex } from '../support/package-index.ts';
import { EXAMPLE_WHEELS, PYTHON_EXAMPLE } from '../support/python-example.ts';
import { spawned } from './drivers.ts';
import { compared, type Figure, MIB } from './figures.ts';

const run = promisify(execFile);
const SAMPLES = 8;
const BUILDS = 3;
const BUILDER = join(import.meta.dirname, '..', '..', 'runner', 'environment', 'build.py');
const INPUT = { what: 'dentist', when: '3 March 2027, 2:30 pm' };

/** Packages that agents use, by what they are for. */
const SETS = [
  { what: 'the clients of two LLM providers', requirements: ['anthropic >=0.40', 'openai >=1.50'] },
  { what: 'numpy and pandas', requirements: ['numpy >=2', 'pandas >=2.2'] },
];

/** Milliseconds that it takes. */
async function took(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Figures of everything that needs a Python, without those for whose packages there is no index. */
export async function python(): Promise<Figure[]> {
  const uv = await uvProgram();
  const figures = await firstAnswers(uv);
  for (const set of SETS) {
    const problem = await unreachable(set.requirements.join('\n'));
    if (problem)
      figures.push({ what: `environment of ${set.what}`, measured: `not measured: ${problem}`, values: null });
    else figures.push(...(await builtAndUnpacked(uv, set)));
  }
  return figures;
}

/** `berth run --with --requirements` beside uv and Python by hand, with packages from a small index on this machine. */
async function firstAnswers(uv: string): Promise<Figure[]> {
  const index = (await PackageIndex.start()).add(...EXAMPLE_WHEELS);
  const cluster = await Installation.start();
  const caller = new Caller(PYTHON_EXAMPLE, { KUBECONFIG: cluster.kubeconfig });
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const values: Record<'first' | 'again' | 'uv' | 'alone', number[]> = { first: [], again: [], uv: [], alone: [] };
  try {
    const spec = { environments: { index: index.url } } as SessionClass['spec'];
    await cluster.client.patch(sessionclasses, { name: 'python' }, { spec });
    cluster.startController({ BERTH_UV: uv });
    for (let i = 0; i <= SAMPLES; i++) {
      // A list of its own, so that nothing is built for it yet.
      const file = join(folder, `${i}.txt`);
      writeFileSync(file, `humanize >=4.9,<5.${i}\npython-dateutil >=2.9,<3\n`);
      const flags = [
        '--class',
        'python',
        '--with',
        'agent.py',
        '--requirements',
        file,
        '--input',
        JSON.stringify(INPUT),
      ];
      const ask = () => caller.ok('run', ...flags, '--', 'python3', 'agent.py');
      const [first, again] = [await took(ask), await took(ask)];
      const venv = join(folder, `venv-${i}`);
      const hand = await took(() => byHand(uv, venv, index.url, ['-r', file]));
      const alone = await agentAlone(venv, folder);
      // The first one warms caches on every side.
      if (i === 0) continue;
      values.first.push(first);
      values.again.push(again);
      values.uv.push(hand + alone);
      values.alone.push(alone);
    }
  } finally {
    caller.remove();
    await cluster.stop();
    await index.close();
    rmSync(folder, { recursive: true, force: true });
  }
  const what = 'berth run --with agent.py --requirements FILE on the embedded cluster';
  return [
    compared(`${what}, first time`, values.first, { what: 'uv venv, uv pip install, python', values: values.uv }),
    compared(`${what}, again`, values.again, { what: 'python alone', values: values.alone }),
  ];
}

/** Makes a virtual environment with what uv has in no cache, and compiles it. */
async function byHand(uv: string, venv: string, index: string | undefined, packages: string[]): Promise<void> {
  await run(uv, ['venv', '--quiet', '--no-config', '--clear', venv]);
  const flags = [
    '--quiet',
    '--no-config',
    '--no-cache',
    '--python',
    venv,
    '--only-binary',
    ':all:',
    '--compile-bytecode',
  ];
  await run(uv, ['pip', 'install', ...flags, ...(index ? ['--default-index', index] : []), ...packages]);
}

/** Milliseconds of the example's agent as a plain process. */
function agentAlone(venv: string, folder: string): Promise<number> {
  const markers = 'BERTH_RESULT_START_MARKER=a BERTH_RESULT_END_MARKER=b';
  const state = mkdtempSync(join(folder, 'state-'));
  const script = `cd ${PYTHON_EXAMPLE} && BERTH_STATE_DIR=${state} ${markers} exec ${venv}/bin/python agent.py`;
  return spawned({ command: ['sh', '-c', script], stdin: `${JSON.stringify({ input: INPUT })}\n` });
}

/** The builder beside uv alone, and the runner's unpacking beside tar's. */
async function builtAndUnpacked(uv: string, { what, requirements }: (typeof SETS)[number]): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const index = await machineIndex();
  const state = join(folder, 'state');
  const values: Record<'build' | 'uv' | 'unpack' | 'tar', number[]> = { build: [], uv: [], unpack: [], tar: [] };
  try {
    for (let i = 0; i <= BUILDS; i++) {
      rmSync(state, { recursive: true, force: true });
      mkdirSync(state);
      const build = await took(() => builder(uv, index, folder, requirements));
      const hand = await took(() => byHand(uv, join(folder, `venv-${i}`), index, requirements));
      // The first one warms the index.
      if (i === 0) continue;
      values.build.push(build);
      values.uv.push(hand);
    }
    const archive = await packDirectory(state, undefined, MAX_ENVIRONMENT_BYTES);
    writeFileSync(join(folder, 'environment.tar.zst'), archive.packed);
    const path = process.env.PATH ?? '';
    for (let i = 0; i < SAMPLES; i++) {
      values.unpack.push(await took(() => unpackEnvironment(join(folder, `u-${i}`), archive, path)));
      const target = join(folder, `t-${i}`);
      mkdirSync(target);
      const script = `zstd -dcq ${folder}/environment.tar.zst | tar -xf - -C ${target}`;
      values.tar.push(await spawned({ command: ['sh', '-c', script], stdin: '' }));
    }
    const size = `${(archive.packed.length / MIB).toFixed(1)} MiB packed, ${(zstdDecompressSync(archive.packed).length / MIB).toFixed(0)} MiB plain`;
    return [
      compared(`build of ${what}, with its lock, check and compiled files`, values.build, {
        what: 'uv venv and uv pip install --compile-bytecode, no cache either',
        values: values.uv,
      }),
      compared(`unpacking ${what} (${size}), its digest checked`, values.unpack, {
        what: 'zstd -d | tar -x',
        values: values.tar,
      }),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs the builder as the agent of a turn. */
async function builder(uv: string, index: string | undefined, folder: string, requirements: string[]): Promise<void> {
  const { PATH = '' } = process.env;
  const markers = { BERTH_RESULT_START_MARKER: '<<<', BERTH_RESULT_END_MARKER: '>>>' };
  const env = { PATH, TMPDIR: folder, HOME: folder, BERTH_STATE_DIR: join(folder, 'state'), ...markers };
  const args = ['-I', BUILDER, '--uv', uv, ...(index ? ['--index', index] : [])];
  const finished = run('python3', args, { env });
  finished.child.stdin?.end(`${JSON.stringify({ input: { requirements } })}\n`);
  const { stdout } = await finished;
  if (!stdout.includes('"status": "success"')) throw new Error(stdout);
  rmSync(join(folder, 'uv-cache'), { recursive: true, force: true });
}
