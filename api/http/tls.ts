/** Certificate and key of the API from files, and their renewal while it runs. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { ConfigError } from '../../core/program/config.ts';
import type { Clock, Logger } from '../../core/runtime.ts';
import type { ApiMetrics } from '../metrics.ts';

/**
 * Interval of the looks at the files. Their content is compared, because the kubelet swaps a Secret's files by a
 * symbolic link of their folder.
 */
const LOOK_MS = 2_000;

/** PEM: a certificate with its chain, and its private key. */
export interface Pair {
  cert: string;
  key: string;
}

export interface TlsFiles {
  certFile: string;
  keyFile: string;
}

/** Reads a pair that a server can use. Rejects with a ConfigError. */
export async function readPair(files: TlsFiles): Promise<Pair> {
  return checked(await read(files), files);
}

/** End of the validity of the pair's certificate, milliseconds since the epoch. */
function notAfter({ cert }: Pair): number {
  return Date.parse(new X509Certificate(cert).validTo);
}

/**
 * Gives each new pair in the files to `use`, for as long as the process runs. Files that cannot be used are logged once
 * and change nothing.
 */
export function renewPair(
  files: TlsFiles,
  first: Pair,
  { clock, log, metrics, use }: { clock: Clock; log: Logger; metrics: ApiMetrics; use: (pair: Pair) => void },
): void {
  let present = first;
  /** Content of the files when they were last read: a pair, or the text of the error that took its place. */
  let seen = JSON.stringify(first);
  metrics.certificateEnd = notAfter(present);
  const look = async () => {
    const found = await read(files).catch((error: Error) => error);
    const text = found instanceof Error ? found.message : JSON.stringify(found);
    if (text === seen) return;
    seen = text;
    try {
      if (found instanceof Error) throw found;
      const pair = checked(found, files);
      if (JSON.stringify(pair) === JSON.stringify(present)) return;
      use(pair);
      present = pair;
      metrics.certificateEnd = notAfter(pair);
      metrics.certificateReloaded('ok');
      log.info({ ...files, notAfter: new Date(notAfter(pair)).toISOString() }, 'certificate reloaded');
    } catch (err) {
      metrics.certificateReloaded('failed');
      log.error({ ...files, err }, 'new certificate cannot be used; the one before is kept');
    }
  };
  const schedule = () => void clock.setTimer(LOOK_MS, () => void look().finally(schedule));
  schedule();
}

/** Reads both files from the same moment: none of them was swapped while the other was read. */
async function read({ certFile, keyFile }: TlsFiles): Promise<Pair> {
  const file = (path: string) =>
    readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw new ConfigError(`the file with the certificate or key of the API, ${path}, cannot be read: ${error.code}`);
    });
  for (;;) {
    const [cert, key] = [await file(certFile), await file(keyFile)];
    if ((await file(certFile)) === cert) return { cert, key };
  }
}

function checked(pair: Pair, { certFile, keyFile }: TlsFiles): Pair {
  for (const [path, text] of [
    [certFile, pair.cert],
    [keyFile, pair.key],
  ]) {
    // Node takes an empty text for none, and serves nobody.
    if (text?.trim() === '')
      throw new ConfigError(`the file with the certificate or key of the API, ${path}, is empty`);
  }
  try {
    createSecureContext(pair);
    notAfter(pair);
  } catch (error) {
    const why = (error as Error).message;
    throw new ConfigError(`${certFile} and ${keyFile} are no certificate with its private key in PEM: ${why}`);
  }
  return pair;
}
