import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { ConfigurationError } from './errors.ts';
import type { TokenSource } from './token.ts';

/** A server of the HTTP API, and how to talk to it. */
export interface Address {
  /** URL without a slash at its end. */
  server: string;
  token: TokenSource;
  namespace: string;
}

export interface GivenAddress {
  server?: string | undefined;
  token?: TokenSource | undefined;
  namespace?: string | undefined;
  allowPlainText?: boolean | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Token with the audience of Berth that a pod has by a projected volume, as the documentation shows it. */
export const POD_TOKEN = '/var/run/secrets/berth/token';
const POD_NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';
/** Folders in which pods have their tokens; a link leads from the one to the other in most images. */
const POD_FOLDERS = ['/var/run/secrets/', '/run/secrets/'];

/**
 * Returns the address from the options; else from BERTH_SERVER, with the token in BERTH_TOKEN_FILE or the one that is projected to `podToken`; else that
 * of the embedded cluster of this user. Throws a ConfigurationError that names what is wrong or missing.
 */
export function addressOf(given: GivenAddress, env: Environment, podToken: string = POD_TOKEN): Address {
  const fromEnv = env.BERTH_SERVER || undefined;
  const server = given.server ?? fromEnv;
  if (server === undefined) return embeddedAddress(given, env);
  const from = given.server === undefined ? 'BERTH_SERVER' : 'server';
  const token = given.token ?? tokenFile(env, from, podToken);
  const url = checkedUrl(server, from, given.allowPlainText === true);
  const ofToken = typeof token === 'object' ? namespaceOf(token.file) : 'default';
  return { server: url, token, namespace: given.namespace ?? ofToken };
}

function tokenFile(env: Environment, from: string, podToken: string): TokenSource {
  if (env.BERTH_TOKEN_FILE) return { file: env.BERTH_TOKEN_FILE };
  if (existsSync(podToken)) return { file: podToken };
  throw new ConfigurationError(
    `${from} needs a token: give the option token, name a file in BERTH_TOKEN_FILE, or mount a token with the audience berth at ${podToken}`,
  );
}

/** Returns the URL without a slash at its end, if a token may go there. */
function checkedUrl(text: string, from: string, mayBePlain: boolean): string {
  return serverUrl(text, {
    mayBePlain,
    from,
    insteadOfUser: 'give the option token instead',
    toBePlain: 'give allowPlainText: true where the network between may read it',
  }).href.replace(/\/+$/, '');
}

/** How the URL of a server is judged, and the words of its refusals that depend on who gives it. */
export interface UrlRules {
  /** True if the token may go unencrypted to other machines. */
  mayBePlain: boolean;
  /** Where the URL is from. */
  from: string;
  insteadOfUser: string;
  toBePlain: string;
}

/** Returns the URL of a server to which a token may go. Throws a ConfigurationError that says what to do. */
export function serverUrl(text: string, { mayBePlain, from, insteadOfUser, toBePlain }: UrlRules): URL {
  const example = 'for example https://berth.example.com';
  const refuse = (why: string) => new ConfigurationError(`${from}: ${why}`);
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:\/\//i.test(text))
    throw refuse(`the URL of a server begins with https:// or http://, ${example}`);
  if (url.username || url.password) throw refuse(`the URL has a user or a password; ${insteadOfUser}`);
  if (url.search || url.hash) throw refuse(`the URL has a ? or #; leave off what follows, ${example}`);
  if (url.protocol === 'http:' && !mayBePlain && !isLoopback(url.hostname)) {
    throw refuse(`${url.host} would get the token unencrypted; use https://, or ${toBePlain}`);
  }
  return url;
}

const isLoopback = (host: string) => host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host);

/** Namespace of the pod whose token the file has; `default` for other files. */
export function namespaceOf(tokenFile: string): string {
  const isOfPod = POD_FOLDERS.some((folder) => tokenFile.startsWith(folder));
  const file = isOfPod
    ? [join(tokenFile, '..', 'namespace'), POD_NAMESPACE].find((path) => existsSync(path))
    : undefined;
  return file === undefined ? 'default' : readFileSync(file, 'utf8').trim();
}

/** The part of the embedded cluster's state file that is used. */
interface EmbeddedState {
  pid?: unknown;
  apiUrl?: unknown;
  apiTokenFile?: unknown;
}

function embeddedAddress({ token, namespace = 'default' }: GivenAddress, env: Environment): Address {
  const path = join(embeddedHome(env), 'state.json');
  const { pid, apiUrl, apiTokenFile } = readState(path);
  if (typeof apiUrl === 'string' && isAlive(pid)) {
    if (token !== undefined) return { server: apiUrl, token, namespace };
    if (typeof apiTokenFile === 'string') return { server: apiUrl, token: { file: apiTokenFile }, namespace };
  }
  throw new ConfigurationError(
    `there is no server: give the options server and token, or set BERTH_SERVER and BERTH_TOKEN_FILE, or start the embedded cluster with: berth local up --detach (${path} does not name one that runs)`,
  );
}

/** Folder of the embedded cluster: BERTH_HOME, or `berth` in the user's data folder. */
function embeddedHome(env: Environment): string {
  if (env.BERTH_HOME) return resolve(env.BERTH_HOME);
  // The XDG specification says that a relative path is ignored.
  const data = env.XDG_DATA_HOME && isAbsolute(env.XDG_DATA_HOME) ? env.XDG_DATA_HOME : undefined;
  return join(data ?? join(homedir(), '.local', 'share'), 'berth');
}

function readState(path: string): EmbeddedState {
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) ?? {}) as EmbeddedState;
  } catch {
    return {};
  }
}

function isAlive(pid: unknown): boolean {
  if (typeof pid !== 'number' || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // The process of another user lives all the same.
    return (error as { code?: unknown }).code === 'EPERM';
  }
}
