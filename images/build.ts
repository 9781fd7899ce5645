/**
 * Stages the root folders of the images under build/images and writes each image as a docker-archive beside them, with
 * their ids in build/images.json: `node images/build.ts [runner] [runner-python] [controller] [api]` (all without
 * arguments).
 */
import { execFile } from 'node:child_process';
import { access, chmod, constants, copyFile, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { HELPER_PATH } from '../core/enter/hello.ts';
import { NODE_FLAGS } from '../core/program/node-flags.ts';
import { INJECTOR_UID } from '../core/resources/names.ts';
import { type ArchiveResult, type Image, type ImageConfig, writeArchive } from './archive.ts';
import { baseModes, nodePath, stageBase, user } from './base.ts';
import { type BuildName, buildName } from './build-name.ts';
import { bundle, licences } from './bundle.ts';
import type { Modes } from './layer.ts';
import { copyRestOfGlibc } from './libraries.ts';
import { stagePython } from './python.ts';

const run = promisify(execFile);
const checkout = join(import.meta.dirname, '..');
const out = join(checkout, 'build', 'images');
const busybox = '/bin/busybox';
const nodeBinary = join(checkout, 'node_modules/node/bin/node');

const programs = ['runner', 'controller', 'api'] as const;
type Program = (typeof programs)[number];

export const images = [...programs, 'runner-python'] as const;
export type ImageName = (typeof images)[number];

/** Registry in the names of the archives. A node that lacks such an image asks no other registry for it, as it would ask docker.io for berth/runner. */
const REGISTRY = 'localhost';

const programOf = (name: ImageName): Program => (name === 'runner-python' ? 'runner' : name);

/**
 * Name of a program's bundle. The runner starts with every session: as CommonJS it takes 5 MiB less than as an ES
 * module.
 */
const bundleOf = (program: Program) => (program === 'runner' ? 'runner.cjs' : `${program}.mjs`);

function config(name: ImageName, { tag, revision }: BuildName): ImageConfig {
  return {
    Entrypoint: [nodePath, ...NODE_FLAGS, `/opt/berth/${bundleOf(programOf(name))}`],
    Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8'],
    User: `${user}:${user}`,
    WorkingDir: '/',
    Labels: {
      'org.opencontainers.image.title': `berth-${name}`,
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': tag,
      'org.opencontainers.image.revision': revision,
    },
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
    (name) => /\.(cjs|node)$/.test(name) || name === 'keeper' || name === 'LICENCES',
  );
  await mkdir(join(own, 'injected/lib'), { recursive: true });
  for (const name of [...runner, 'bin']) await symlink(`../${name}`, join(own, 'injected', name));
  await symlink(nodePath, join(own, 'injected/node'));
  for (const [name, place] of libraries) await symlink(place, join(own, 'injected/lib', name));
  await copyFile(join(import.meta.dirname, 'inject.sh'), join(own, 'inject'));
  await chmod(join(own, 'inject'), 0o755);
}

const helper = '/opt/berth/bin/berth-enter';

/**
 * Modes of the runner's own programs. The helper of a client can be run but not read, as Node: the agent can then neither read nor trace it,
 * and what it carries is the client's. Only the user that copies it into other pods can read it.
 */
const runnerModes: Modes = { [helper]: { mode: 0o751, gid: INJECTOR_UID } };

/**
 * Stages what the runner loads and the programs for an agent beside Node: the keeper that starts it, a POSIX shell with
 * the usual commands, and all of glibc.
 */
async function stageAgentTools(root: string): Promise<void> {
  for (const name of ['keeper', 'signals.node'])
    await copyFile(join(checkout, 'build', name), join(root, 'opt/berth', name));
  await mkdir(join(root, 'opt/berth/bin'));
  for (const name of ['berth-agent', 'berth-enter'])
    await copyFile(join(checkout, 'build/bin', name), join(root, 'opt/berth/bin', name));
  await chmod(join(root, helper), runnerModes[helper]!.mode);
  // The path of the helper in pods of any image, where an init container puts it.
  await mkdir(join(root, dirname(HELPER_PATH)), { recursive: true });
  await symlink(helper, join(root, HELPER_PATH));
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

/** Returns the staged image: `base`, its program's layer, and for `runner-python` Python above them. */
export function image(name: ImageName, build: BuildName): Image {
  const program = programOf(name);
  const modes = program === 'runner' ? runnerModes : {};
  const layers = [
    { folder: join(out, 'base'), modes: baseModes },
    { folder: join(out, program), modes },
  ];
  if (name === 'runner-python') layers.push({ folder: join(out, 'python'), modes: {} });
  return { name: `${REGISTRY}/berth/${name}:${build.tag}`, layers, config: config(name, build) };
}

/** Stages and writes the given images, with the tag of `build` in build/images/tag. */
export async function buildImages(wanted: readonly ImageName[], build: BuildName): Promise<ArchiveResult[]> {
  await rm(out, { recursive: true, force: true });
  await mkdir(join(out, 'base'), { recursive: true });
  const libraries = await stageBase(join(out, 'base'), nodeBinary);
  for (const program of new Set(wanted.map(programOf))) await stageProgram(program, join(out, program), libraries);
  if (wanted.includes('runner-python')) await stagePython(join(out, 'python'));
  const results: ArchiveResult[] = [];
  for (const name of wanted) results.push(await writeArchive(image(name, build), join(out, `${name}.tar`)));
  await writeFile(join(out, 'tag'), `${build.tag}\n`);
  await writeFile(join(checkout, 'build/images.json'), `${JSON.stringify(results, null, 2)}\n`);
  return results;
}

if (import.meta.main) {
  const names = process.argv.slice(2);
  const unknown = names.filter((name) => !images.some((image) => image === name));
  if (unknown.length > 0) {
    console.error(`no such image: ${unknown.join(', ')}; there are ${images.join(', ')}`);
    process.exit(2);
  }
  const wanted = images.filter((image) => names.length === 0 || names.includes(image));
  for (const { name, id, bytes, file } of await buildImages(wanted, await buildName(checkout))) {
    console.log(`${name}  ${id.slice(0, 19)}  ${(bytes / 1e6).toFixed(1)} MB  ${file}`);
  }
}
