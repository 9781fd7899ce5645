import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Connection } from '../../core/kube/connection.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { refused } from '../errors.ts';
import type { ChosenServer } from './chosen.ts';

/** Folders in which pods have their tokens; a link leads from the one to the other in most images. */
const POD_TOKENS = ['/var/run/secrets/', '/run/secrets/'];
const POD_NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** Connects to the server. Throws a CliError that names the flag and what is wrong with it. */
export function serverConnection(chosen: ChosenServer, flags: ClusterFlags, cli: Pick<Cli, 'cwd'>): Connection {
  const { from, tokenFile } = chosen;
  const url = checkedUrl(chosen, flags.allowPlainText === true);
  if (tokenFile === undefined) {
    throw refused(`${from} needs a token: name a file that has one with --token-file or BERTH_TOKEN_FILE`);
  }
  const path = resolve(cli.cwd, tokenFile);
  readToken(path);
  const { certificateAuthority } = flags;
  if (certificateAuthority !== undefined && url.protocol === 'http:') {
    throw refused(`--certificate-authority is for https://, and ${from} is http://; leave one of them out`);
  }
  return {
    server: url.href,
    tls: certificateAuthority === undefined ? {} : { ca: readCa(resolve(cli.cwd, certificateAuthority)) },
    // The file is read for each request: the kubelet replaces the tokens of pods.
    headers: () => ({ authorization: `Bearer ${readToken(path)}` }),
    namespace: namespaceOf(path),
  };
}

function checkedUrl({ url: text, from }: ChosenServer, mayBePlain: boolean): URL {
  const example = 'https://berth.example.com';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:\/\//i.test(text)) {
    throw refused(`${from}: the URL of a server begins with https:// or http://, for example ${example}`);
  }
  if (url.username || url.password)
    throw refused(`${from}: the URL has a user or a password; use --token-file instead`);
  if (url.search || url.hash)
    throw refused(`${from}: the URL has a ? or #; leave off what follows, for example ${example}`);
  if (url.protocol === 'http:' && !mayBePlain && !isLoopback(url.hostname)) {
    throw refused(
      `${from}: ${url.host} would get the token unencrypted; use https://, or give --allow-plain-text if the network between may read it`,
    );
  }
  return url;
}

const isLoopback = (host: string) => host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host);

/** Returns the token in the file. The text of the file is in no error. */
function readToken(path: string): string {
  const token = readFlagFile('--token-file', path).toString('utf8').trim();
  if (token === '') throw refused(`--token-file: ${path} is empty`);
  if (!/^[\x21-\x7e]+$/.test(token)) throw refused(`--token-file: ${path} has no token alone: one line without spaces`);
  return token;
}

function readCa(path: string): Buffer {
  const pem = readFlagFile('--certificate-authority', path);
  if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  throw refused(`--certificate-authority: ${path} has no certificate in PEM`);
}

function readFlagFile(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw refused(`${flag}: ${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** Namespace of the pod whose token it is; `default` for other files. */
function namespaceOf(tokenPath: string): string {
  const beside = join(tokenPath, '..', 'namespace');
  const isOfPod = POD_TOKENS.some((folder) => tokenPath.startsWith(folder));
  const file = isOfPod ? [beside, POD_NAMESPACE].find((path) => existsSync(path)) : undefined;
  return file === undefined ? 'default' : readFileSync(file, 'utf8').trim();
}
