/** Layer of the runner image with Python: Debian's python3, the libraries that wheels need, and certificates for it. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeRoot } from './libraries.ts';
import { uvProgram } from './uv.ts';

const run = promisify(execFile);

export async function stagePython(root: string): Promise<void> {
  await makeRoot(root);
  await run(join(import.meta.dirname, 'python-root.sh'), [root]);
  await symlink('python3', join(root, 'usr/bin/python'));
  // Debian's OpenSSL looks here; the package `openssl` makes these links and brings nothing else that Python needs.
  await mkdir(join(root, 'usr/lib/ssl'), { recursive: true });
  await symlink('/etc/ssl/certs', join(root, 'usr/lib/ssl/certs'));
  await symlink('/etc/ssl/certs/ca-certificates.crt', join(root, 'usr/lib/ssl/cert.pem'));
  await stageBuilder(root);
}

/** Stages uv, the program that builds environments with it, and `bring`, which copies both into a volume of a build's pod. */
async function stageBuilder(root: string): Promise<void> {
  const folder = join(root, 'opt/berth/uv');
  await mkdir(folder, { recursive: true });
  await copyFile(await uvProgram(), join(folder, 'uv'));
  await copyFile(join(import.meta.dirname, '../runner/environment/build.py'), join(folder, 'build.py'));
  await writeFile(join(folder, 'bring'), '#!/bin/sh\nset -eu\ncp /opt/berth/uv/uv /opt/berth/uv/build.py "$1"\n');
  for (const name of ['uv', 'bring']) await chmod(join(folder, name), 0o755);
}
