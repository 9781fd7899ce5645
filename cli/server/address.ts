import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { namespaceOf, POD_TOKEN, serverUrl } from '../../clients/typescript/src/address.ts';
import type { Connection } from '../../core/kube/connection.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { refused } from '../errors.ts';
import type { ChosenServer } from './chosen.ts';

/**
 * Connects to the server, with the token that is projected to `podToken` where no other is named. Throws a CliError that names the flag and what is wrong
 * with it.
 */
export function serverConnection(
  chosen: ChosenServer,
  flags: ClusterFlags,
  cli: Pick<Cli, 'cwd'>,
  podToken: string = POD_TOKEN,
): Connection {
  const { from, tokenFile = existsSync(podToken) ? podToken : undefined } = chosen;
  const url = checkedUrl(chosen, flags.allowPlainText === true);
  if (tokenFile === undefined) {
    throw refused(
      `${from} needs a token: name a file that has one with --token-file or BERTH_TOKEN_FILE; in a pod, mount one with the audience berth at ${podToken}`,
    );
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

function checkedUrl({ url, from }: ChosenServer, mayBePlain: boolean): URL {
  try {
    return serverUrl(url, {
      mayBePlain,
      from,
      insteadOfUser: 'use --token-file instead',
      toBePlain: 'give --allow-plain-text if the network between may read it',
    });
  } catch (error) {
    throw refused((error as Error).message);
  }
}

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
