/** Layer of the runner image with Python: Debian's python3, the libraries that wheels need, and certificates for it. */
import { execFile } from 'node:child_process';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeRoot } from './libraries.ts';

const run = promisify(execFile);

export async function stagePython(root: string): Promise<void> {
  await makeRoot(root);
  await run(join(import.meta.dirname, 'python-root.sh'), [root]);
  await symlink('python3', join(root, 'usr/bin/python'));
  // Debian's OpenSSL looks here; the package `openssl` makes these links and brings nothing else that Python needs.
  await mkdir(join(root, 'usr/lib/ssl'), { recursive: true });
  await symlink('/etc/ssl/certs', join(root, 'usr/lib/ssl/certs'));
  await symlink('/etc/ssl/certs/ca-certificates.crt', join(root, 'usr/lib/ssl/cert.pem'));
}
