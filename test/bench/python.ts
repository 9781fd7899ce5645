/** Python environments without Kubernetes: building, unpacking, and the first answer on the embedded cluster. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
import type { Outcome } from './run.ts';
import { count } from './settings.ts';
import { took } from './took.ts';

const run = promisify(execFile);
const SAMPLES = count(8, 2);
const BUILDS = count(3, 1);
const BUILDER = join(import.meta.dirname, '..', '..', 'runner', 'environment', 'build.py');
const INPUT = { what: 'dentist', when: '3 March 2027, 2:30 pm' };

/** Packages that agents use, by what they are for. */
const SETS = [
  { what: 'the clients of two LLM providers', requirements: ['anthropic >=0.40', 'openai >=1.50'], samples: BUILDS },
  { what: 'numpy and pandas', requirements: ['numpy >=2', 'pandas >=2.2'], samples: count(30, 2), target: true },
];

/** Figures of everything that needs a Python, without those for whose packages there is no index. */
export async function python(): Promise<Outcome> {
  const uv = await uvProgram();
  const figures: Figure[] = [...(await firstAnswers(uv)), await withFiles()];
  const rows: NonNullable<Outcome['rows']>[number][] = [];
  for (const set of SETS) {
    const problem = await unreachable(set.requirements.join('\n'));
    if (problem) {
      const why = `not measured: ${problem}`;
      figures.push({ what: `environment of ${set.what}`, measured: why, values: null });
      if (set.target) rows.push({ id: 'environment-build', why }, { id: 'environment-unpack', why });
      continue;
    }
    const [build, unpack] = await builtAndUnpacked(uv, set);
    if (set.target) {
      const [uvFloor, tar] = [build.values.beside, unpack.values.beside];
      rows.push(
        { id: 'environment-build', values: build.values.values, floors: { 'uv pip install': uvFloor } },
        { id: 'environment-unpack', values: unpack.values.values, floors: { tar } },
      );
    }
    figures.push(build, unpack, ...(await carried(uv, set)));
  }
  return { rows, figures };
}

/** `berth run` with a file beside the same program on the command line. */
async function withFiles(): Promise<Figure> {
  const cluster = await Installation.start();
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const caller = new Caller(folder, { KUBECONFIG: cluster.kubeconfig });
  const values: Record<'with' | 'plain', number[]> = { with: [], plain: [] };
  const program = 'print(1)\n';
  writeFileSync(join(folder, 'agent.py'), program);
  const flags = ['--class', 'python', '--result', 'text', '--input', '1'];
  try {
    cluster.startController();
    for (let i = 0; i <= SAMPLES; i++) {
      const plain = await took(() => caller.ok('run', ...flags, '--', 'python3', '-c', program));
      const files = await took(() => caller.ok('run', ...flags, '--with', 'agent.py', '--', 'python3', 'agent.py'));
      if (i === 0) continue;
      values.plain.push(plain);
      values.with.push(files);
    }
  } finally {
    caller.remove();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  const beside = { what: 'the same program as an argument', values: values.plain };
  return compared('berth run --with agent.py on the embedded cluster', values.with, beside);
}

/** Sessions that get the environment from the controller: their first answers, and what controller and runner need meanwhile. */
async function carried(uv: string, { what, requirements }: (typeof SETS)[number]): Promise<Figure[]> {
  const index = await machineIndex();
  const cluster = await Installation.start();
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const caller = new Caller(folder, { KUBECONFIG: cluster.kubeconfig });
  const values: Record<'with' | 'plain' | 'controller' | 'runner', number[]> = {
    ...{ with: [], plain: [], controller: [], runner: [] },
  };
  try {
    const environments = index ? { index } : {};
    await cluster.client.patch(sessionclasses, { name: 'python' }, { spec: { environments } as SessionClass['spec'] });
    const controller = cluster.startController({ BERTH_UV: uv });
    writeFileSync(join(folder, 'requirements.txt'), requirements.join('\n'));
    await caller.ok('env', 'create', 'tools', '-r', 'requirements.txt');
    // The program ends by telling the peak of its runner, the parent of its keeper.
    const flags = ['--class', 'python', '--result', 'text'];
    // Pods stay: right after thousands of files were deleted, ext4 is slow to create others.
    const ask = async (name: string, ...more: string[]) => {
      await caller.ok('create', name, ...flags, ...more, '--', 'python3', '-c', RUNNER_PEAK);
      return Number(await caller.ok('turn', name, '--input', '1'));
    };
    const idle = peakBytes(controller.child.pid);
    const peaks: number[] = [];
    for (let i = 0; i <= BUILDS; i++) {
      const plain = await took(async () => void peaks.push(await ask(`plain-${i}`)));
      const own = await took(async () => void values.runner.push(await ask(`own-${i}`, '--environment', 'tools')));
      if (i === 0) continue;
      values.plain.push(plain);
      values.with.push(own);
    }
    const [peak, before] = [peakBytes(controller.child.pid) / MIB, idle / MIB];
    const [runner, other] = [Math.max(...values.runner) / MIB, Math.max(...peaks) / MIB];
    const mib = (value: number) => `${value.toFixed(0)} MiB`;
    return [
      compared(`berth create --environment and berth turn with ${what}, built before`, values.with, {
        what: 'the same without an environment',
        values: values.plain,
      }),
      {
        what: `peak memory while ${what} are built and given to ${BUILDS + 1} sessions`,
        measured: `controller ${mib(peak)}, runner ${mib(runner)}`,
        beside: `controller before ${mib(before)}, runner without an environment ${mib(other)}`,
        difference: `${mib(peak - before)}, ${mib(runner - other)}`,
        values: { peak, before, runner, other },
      },
    ];
  } finally {
    caller.remove();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Program that prints the peak of its runner in bytes: of the ancestor that runs Berth's runner. */
const RUNNER_PEAK = `
import os, re
pid = os.getppid()
while pid > 1:
    status = open(f"/proc/{pid}/status").read()
    if os.readlink(f"/proc/{pid}/exe").endswith("/node"):
        print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) * 1024)
        break
    pid = int(re.search(r"PPid:\\s+(\\d+)", status)[1])
`;

/** Largest resident size that the process has had, bytes. */
function peakBytes(pid: number | undefined): number {
  const [, kilobytes = 'NaN'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
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
async function builtAndUnpacked(uv: string, { what, requirements, samples }: (typeof SETS)[number]) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const index = await machineIndex();
  const state = join(folder, 'state');
  const values: Record<'build' | 'uv' | 'unpack' | 'tar', number[]> = { build: [], uv: [], unpack: [], tar: [] };
  try {
    for (let i = 0; i <= samples; i++) {
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
    for (let i = 0; i < samples; i++) {
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
    ] as const;
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
