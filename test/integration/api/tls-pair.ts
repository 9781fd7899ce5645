import { generateKeyPairSync } from 'node:crypto';
import { certificate } from '../../../local/apiserver/auth/certificate.ts';

const DAY_MS = 86_400_000;

export interface Pair {
  cert: string;
  key: string;
}

/** A key and its own certificate for 127.0.0.1, in PEM. */
export function makePair(name: string): Pair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = certificate({ privateKey, publicKey, name, from: Date.now() - DAY_MS, to: Date.now() + DAY_MS });
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}
