import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificate } from './certificate.ts';

/** Keys of the server: a key and its certificate for TLS; the same key signs service account tokens. */
export interface ServerKeys {
  privateKey: KeyObject;
  publicKey: KeyObject;
  /** PEM. */
  certificate: string;
}

/** Validity of the certificate, longer than any cluster on a laptop lives: ten years; milliseconds. */
const validity = 10 * 365 * 86_400_000;

/** Returns new keys, or the stored ones of a folder, so that kubeconfigs and tokens stay valid. */
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
    writeWhole(certificatePath, pem, 0o644);
    writeWhole(keyPath, privateKey.export({ type: 'pkcs8', format: 'pem' }), 0o600);
  }
  return { privateKey, publicKey, certificate: pem };
}

/** Writes a file that is there as a whole or not at all, also after a full disk, a kill or a power loss. */
function writeWhole(path: string, text: string | Buffer, mode: number): void {
  const temporary = `${path}.new`;
  writeFileSync(temporary, text, { mode, flush: true });
  renameSync(temporary, path);
}
