/** Images that know nothing of Berth: a busybox, a Debian with and without Python, a musl, and one with a single static program and nothing else. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type ArchiveResult, type ImageConfig, writeArchive } from '../../../images/archive.ts';
import type { Modes } from '../../../images/layer.ts';
import { makeRoot } from '../../../images/libraries.ts';

const run = promisify(execFile);
const out = join(import.meta.dirname, '../../../build/images');

export const busyboxImage = 'example/busybox:e2e';
export const debianImage = 'example/debian:e2e';
export const debianPythonImage = 'example/debian-python:e2e';
export const muslImage = 'example/musl:e2e';
export const staticImage = 'example/static:e2e';

/** Builds them once the layer with Python is staged; resolves with the archives. */
export async function buildAnyImages(): Promise<ArchiveResult[]> {
  const env = ['PATH=/usr/local/bin:/usr/bin:/bin'];
  // Environment variables of an image that would break a foreign program.
  const odd = ['LD_LIBRARY_PATH=/nowhere', 'LD_PRELOAD=/usr/lib/nothing.so', 'NODE_OPTIONS=--inspect', 'NAME=debian'];
  return [
    await write(busyboxImage, 'any-busybox', stageBusybox, { Entrypoint: ['/bin/sh'], Env: env }),
    await write(
      debianImage,
      'any-debian',
      async (root) => {
        await makeRoot(root);
        await script('debian-root.sh', root);
      },
      { Entrypoint: ['/bin/bash'], Env: [...env, ...odd], User: '0:0', WorkingDir: '/root' },
      { '/root': { mode: 0o700 } },
    ),
    await writeArchive(
      {
        name: debianPythonImage,
        layers: ['any-debian', 'python'].map((folder) => ({ folder: join(out, folder) })),
        config: { Entrypoint: ['/usr/bin/python3'], Env: env },
      },
      join(out, 'any-debian-python.tar'),
    ),
    await write(muslImage, 'any-musl', (root) => script('musl-root.sh', root), { Entrypoint: ['/agent'], Env: odd }),
    await write(staticImage, 'any-static', (root) => copyFile('/bin/busybox', join(root, 'busybox')), {
      Entrypoint: ['/busybox'],
    }),
  ];
}

const script = (name: string, root: string) => run(join(import.meta.dirname, name), [root]);

async function write(
  name: string,
  folder: string,
  stage: (root: string) => Promise<unknown>,
  config: ImageConfig,
  modes: Modes = {},
): Promise<ArchiveResult> {
  const root = join(out, folder);
  await mkdir(root, { recursive: true });
  await stage(root);
  return writeArchive({ name, layers: [{ folder: root, modes }], config }, `${root}.tar`);
}

async function stageBusybox(root: string): Promise<void> {
  const bin = join(root, 'bin');
  await mkdir(bin, { recursive: true });
  await copyFile('/bin/busybox', join(bin, 'busybox'));
  await chmod(join(bin, 'busybox'), 0o755);
  const { stdout } = await run('/bin/busybox', ['--list']);
  for (const name of stdout.split('\n').filter((name) => name !== '' && name !== 'busybox')) {
    await symlink('busybox', join(bin, name));
  }
}
