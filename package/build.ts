/**
 * Makes the npm package of the command line, build/berth-VERSION.tgz, from a folder that it stages in build/package, and the wheel of
 * the Python client: `node package/build.ts`. Prints the package's path and size, then the wheel's path. The package needs nothing of the
 * machine that installs it but Linux with glibc and the same architecture: it has Node and the static helpers inside.
 */
import { execFile } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { bundle, bundleTogether, licences } from '../images/bundle.ts';
import { buildWheel } from './wheel.ts';

const run = promisify(execFile);
const checkout = join(import.meta.dirname, '..');
const out = join(checkout, 'build');
const RUN_MS = 120_000;
const PACK_MS = 300_000;

/** Programs of the embedded cluster, which share the modules of one bundle. */
const CLUSTER = { local: 'local/main.ts', controller: 'controller/main.ts', api: 'api/main.ts' };

/** Static programs and the addon that `make keeper` builds, by their place below `build` and below `lib`, where the programs look for them. */
const HELPERS = ['keeper', 'signals.node', 'bin/berth-agent', 'bin/berth-enter'];

/** Files of the embedded cluster that stand at the same place in the checkout. */
const DATA = ['manifests', 'runner/environment/build.py', 'local/apiserver/registry/builtin/types.json'];

/** Stages the package in `folder`, which is replaced. Rejects where a helper has not been built. */
async function stage(folder: string): Promise<void> {
  const lib = join(folder, 'lib');
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(lib, 'bin'), { recursive: true });
  const packages = new Set([
    ...(await bundle(checkout, 'cli/program.ts', join(lib, 'cli.cjs'), 'inside')),
    ...(await bundleTogether(checkout, CLUSTER, lib)),
    ...(await bundle(checkout, 'runner/main.ts', join(lib, 'runner.cjs'))),
  ]);
  await copyFile(join(import.meta.dirname, 'start.cjs'), join(lib, 'start.cjs'));
  for (const place of HELPERS) await copyFile(join(out, place), join(lib, place));
  for (const path of DATA) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await cp(join(checkout, path), join(folder, path), { recursive: true });
  }
  await stageNode(join(lib, 'node'));
  await mkdir(join(folder, 'bin'));
  await copyFile(join(import.meta.dirname, 'berth'), join(folder, 'bin/berth'));
  await copyFile(join(import.meta.dirname, 'README.md'), join(folder, 'README.md'));
  await copyFile(join(checkout, 'LICENSE'), join(folder, 'LICENSE'));
  await writeFile(
    join(folder, 'LICENCES'),
    `${await licences(checkout, [...packages].sort())}\n${await licenceOfNode()}`,
  );
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(await manifest(), null, 2)}\n`);
}

/** Copies Node without its symbols, a tenth of its size. */
async function stageNode(target: string): Promise<void> {
  await copyFile(process.execPath, target);
  await run('strip', [target]);
}

async function licenceOfNode(): Promise<string> {
  const text = await readFile(join(nodePackage(), 'LICENSE'), 'utf8');
  return `${'='.repeat(80)}\nNode.js ${process.versions.node}\n\n${text.trim()}\n`;
}

/** Folder of the npm package that has this machine's Node, a dependency of the package `node`. */
function nodePackage(): string {
  const name = `node-linux-${arch()}`;
  return dirname(createRequire(join(checkout, 'node_modules/node/package.json')).resolve(`${name}/package.json`));
}

async function manifest(): Promise<object> {
  const { name, version, description, license } = JSON.parse(await readFile(join(checkout, 'package.json'), 'utf8'));
  return {
    name,
    version,
    description,
    license,
    type: 'module',
    bin: { berth: 'bin/berth', 'kubectl-session': 'bin/berth' },
    os: ['linux'],
    cpu: [arch()],
    libc: ['glibc'],
  };
}

/**
 * Writes the code cache of the staged command line. Its commands run on the staged embedded cluster, so a package that does
 * not work is not packed.
 */
async function warm(folder: string): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'berth-package-'));
  const env = { ...process.env, HOME: home, BERTH_HOME: join(home, 'berth'), KUBECONFIG: '' };
  const berth = (...args: string[]) => run(join(folder, 'bin/berth'), args, { env, timeout: RUN_MS });
  try {
    await berth('local', 'up', '--detach');
    const args = [join(import.meta.dirname, 'warm.cjs'), join(folder, 'lib')];
    await run(join(folder, 'lib/node'), args, { env, timeout: RUN_MS });
  } finally {
    await berth('local', 'down');
    await rm(home, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Packs the staged folder; resolves with the tarball's path. */
async function pack(folder: string): Promise<string> {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', out, folder];
  const { stdout } = await run('npm', args, { timeout: PACK_MS, maxBuffer: 2 ** 26 });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return join(out, filename);
}

const staged = join(out, 'package');
await stage(staged);
await warm(staged);
const tarball = await pack(staged);
const { size } = await stat(tarball);
console.log(`${tarball}  ${(size / 1e6).toFixed(1)} MB`);
console.log(await buildWheel(checkout, out));
