import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificate } from './certificate.ts';

/** What the server proves itself with: a key and its certificate for TLS, and the key again for service account tokens. */
export interface ServerKeys {
  privateKey: KeyObject;
  publicKey: KeyObject;
  /** PEM. */
  certificate: string;
}

/** A day more than enough for a cluster on a laptop; milliseconds. */
const validity = 10 * 365 * 86_400_000;

/** New keys, or with a folder those that were made before: kubeconfigs and tokens stay good. */
export function serverKeys(now: number, dir?: string): ServerKeys {
  const keyPath = dir && join(dir, 'server.key');
  const certificatePath = dir && join(dir, 'server.crt');
  if (keyPath && certificatePath) {
    try {
      const privateKey = createPrivateKey(readFileSync(keyPath));
      return { privateKey, publicKey: createPublicKey(privateKey), certificate: readFileSync(certificatePath, 'utf8') };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = certificate({ privateKey, publicKey, name: 'berth-embedded', from: now - 3_600_000, to: now + validity });
  if (dir && keyPath && certificatePath) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    writeFileSync(certificatePath, pem);
    writeFileSync(keyPath, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  }
  return { privateKey, publicKey, certificate: pem };
}
