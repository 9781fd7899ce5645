/**
 * Stages the root folders of the images under build/images and writes each image as a docker-archive beside them, with
 * their ids in build/images.json: `node images/build.ts [runner] [controller] [api]` (all without arguments).
 */
import { execFile } from 'node:child_process';
import { access, chmod, constants, copyFile, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { NODE_FLAGS } from '../core/program/node-flags.ts';
import { type ArchiveResult, type Image, type ImageConfig, writeArchive } from './archive.ts';
import { baseModes, nodePath, stageBase, user } from './base.ts';
import { bundle, licences } from './bundle.ts';
import { copyRestOfGlibc } from './libraries.ts';

const run = promisify(execFile);
const checkout = join(import.meta.dirname, '..');
const out = join(checkout, 'build', 'images');
const busybox = '/bin/busybox';
const nodeBinary = join(checkout, 'node_modules/node/bin/node');

export const programs = ['runner', 'controller', 'api'] as const;
export type Program = (typeof programs)[number];

/**
 * Name of a program's bundle. The runner starts with every session: as CommonJS it takes 5 MiB less than as an ES
 * module.
 */
const bundleOf = (program: Program) => (program === 'runner' ? 'runner.cjs' : `${program}.mjs`);

function config(program: Program): ImageConfig {
  return {
    Entrypoint: [nodePath, ...NODE_FLAGS, `/opt/berth/${bundleOf(program)}`],
    Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8'],
    User: `${user}:${user}`,
    WorkingDir: '/',
    Labels: { 'org.opencontainers.image.title': `berth-${program}`, 'org.opencontainers.image.licenses': 'Apache-2.0' },
  };
}

async function stageProgram(program: Program, root: string, libraries: Map<string, string>): Promise<void> {
  const folder = join(root, 'opt/berth');
  await mkdir(folder, { recursive: true });
  const packages = await bundle(checkout, `${program}/main.ts`, join(folder, bundleOf(program)));
  await writeFile(join(folder, 'LICENCES'), await licences(checkout, packages));
  if (program === 'runner') {
    await stageAgentTools(root);
    await stageInjection(root, libraries);
  }
}

/**
 * Stages `/opt/berth/inject`, which copies the folder beside it, made of links, into a volume of another image's pod.
 */
async function stageInjection(root: string, libraries: Map<string, string>): Promise<void> {
  const own = join(root, 'opt/berth');
  const runner = (await readdir(own)).filter(
    (name) => name.endsWith('.cjs') || name === 'keeper' || name === 'LICENCES',
  );
  await mkdir(join(own, 'injected/lib'), { recursive: true });
  for (const name of [...runner, 'bin']) await symlink(`../${name}`, join(own, 'injected', name));
  await symlink(nodePath, join(own, 'injected/node'));
  for (const [name, place] of libraries) await symlink(place, join(own, 'injected/lib', name));
  await copyFile(join(import.meta.dirname, 'inject.sh'), join(own, 'inject'));
  await chmod(join(own, 'inject'), 0o755);
}

/**
 * Stages the programs for an agent beside Node: the keeper that starts it, a POSIX shell with the usual commands, and
 * all of glibc.
 */
async function stageAgentTools(root: string): Promise<void> {
  await copyFile(join(checkout, 'build/keeper'), join(root, 'opt/berth/keeper'));
  await mkdir(join(root, 'opt/berth/bin'));
  await copyFile(join(checkout, 'build/bin/berth-agent'), join(root, 'opt/berth/bin/berth-agent'));
  await access(busybox, constants.X_OK).catch(() => {
    throw new Error(
      `${busybox} is missing: install Debian's package busybox-static, the runner image takes its shell from it`,
    );
  });
  const bin = join(root, 'usr/bin');
  await mkdir(bin, { recursive: true });
  await copyFile(busybox, join(bin, 'busybox'));
  await chmod(join(bin, 'busybox'), 0o755);
  const { stdout } = await run(busybox, ['--list']);
  for (const name of stdout.split('\n')) {
    if (name !== '' && name !== 'busybox') await symlink('busybox', join(bin, name));
  }
  await copyRestOfGlibc(nodeBinary, root);
}

/** Returns the staged image of `program`: `base` and its own layer. */
export function image(program: Program, tag: string): Image {
  return {
    name: `berth/${program}:${tag}`,
    layers: [{ folder: join(out, 'base'), modes: baseModes }, { folder: join(out, program) }],
    config: config(program),
  };
}

/** Stages and writes the given images. */
export async function buildImages(wanted: readonly Program[]): Promise<ArchiveResult[]> {
  const { version } = JSON.parse(await readFile(join(checkout, 'package.json'), 'utf8'));
  await rm(out, { recursive: true, force: true });
  await mkdir(join(out, 'base'), { recursive: true });
  const libraries = await stageBase(join(out, 'base'), nodeBinary);
  const results: ArchiveResult[] = [];
  for (const program of wanted) {
    await stageProgram(program, join(out, program), libraries);
    results.push(await writeArchive(image(program, version), join(out, `${program}.tar`)));
  }
  await writeFile(join(checkout, 'build/images.json'), `${JSON.stringify(results, null, 2)}\n`);
  return results;
}

if (import.meta.main) {
  const names = process.argv.slice(2);
  const unknown = names.filter((name) => !programs.some((program) => program === name));
  if (unknown.length > 0) {
    console.error(`no such image: ${unknown.join(', ')}; there are ${programs.join(', ')}`);
    process.exit(2);
  }
  const wanted = programs.filter((program) => names.length === 0 || names.includes(program));
  for (const { name, id, bytes, file } of await buildImages(wanted)) {
    console.log(`${name}  ${id.slice(0, 19)}  ${(bytes / 1e6).toFixed(1)} MB  ${file}`);
  }
}
