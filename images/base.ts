/** Lowest layer of every image: Node, the libraries it needs, certificate authorities, one user that is not root. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { promisify } from 'node:util';
import { INJECTOR_UID } from '../core/resources/names.ts';
import type { Modes } from './layer.ts';
import { copyLibraries, makeRoot } from './libraries.ts';

const run = promisify(execFile);

/** User and group that every image runs as. */
export const user = 65532;
export const nodePath = '/usr/local/bin/node';

/**
 * Modes of Node's binary: it can be run but not read. The kernel then keeps the process's memory, environment and
 * descriptors from other processes of its uid, and so protects the runner from its own agent. Only the user that copies
 * the binary into other pods can read it.
 */
export const baseModes: Modes = {
  [nodePath]: { mode: 0o751, gid: INJECTOR_UID },
  // Sessions of a class with `scratch: Image` write to these directories; the others have volumes there.
  '/tmp': { mode: 0o1777 },
  '/berth': { mode: 0o1777 },
};

/** Resolves with the names and the places of the libraries in the image. */
export async function stageBase(root: string, nodeBinary: string): Promise<Map<string, string>> {
  await makeRoot(root);
  const target = join(root, nodePath);
  await mkdir(dirname(target), { recursive: true });
  await copyFile(nodeBinary, target);
  await chmod(target, 0o755);
  await run('strip', [target]);
  const libraries = await copyLibraries(target, root);
  await chmod(target, baseModes[nodePath]!.mode);
  for (const folder of ['tmp', 'berth', 'etc/ssl/certs']) await mkdir(join(root, folder), { recursive: true });
  for (const folder of ['/tmp', '/berth']) await chmod(join(root, folder), baseModes[folder]!.mode);
  const etc = (name: string, text: string) => writeFile(join(root, 'etc', name), text);
  await etc('passwd', `root:x:0:0:root:/:/sbin/nologin\nagent:x:${user}:${user}:agent:/tmp:/bin/sh\n`);
  await etc('group', `root:x:0:\nagent:x:${user}:\n`);
  await etc('nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n');
  // Certificates for programs other than Node: Node's own list, so that the image does not depend on the machine that
  // builds it.
  await etc('ssl/certs/ca-certificates.crt', `${rootCertificates.join('\n')}\n`);
  return libraries;
}
