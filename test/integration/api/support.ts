import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { apiConfig } from '../../../api/config.ts';
import type { Problem } from '../../../api/problems/problems.ts';
import type { Route } from '../../../api/route.ts';
import { buildServer } from '../../../api/server.ts';
import { KubeClient } from '../../../core/kube/client.ts';
import { loadConnection } from '../../../core/kube/config.ts';
import { serviceAccounts } from '../../../core/kube/resources.ts';
import type { Resource } from '../../../core/kube/types.ts';
import { parseConfig } from '../../../core/program/config.ts';
import { sessionclasses } from '../../../core/resources/kinds.ts';
import type { Logger } from '../../../core/runtime.ts';
import { silentLogger, systemClock, systemRandom } from '../../../core/system.ts';
import { undocumented } from '../../support/documented.ts';
import { eventually } from '../../support/eventually.ts';
import { Installation } from '../../support/installation.ts';

const rbac = (plural: string, kind: string, namespaced = true): Resource => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural,
  kind,
  namespaced,
});
const clusterRoles = rbac('clusterroles', 'ClusterRole', false);
const clusterRoleBindings = rbac('clusterrolebindings', 'ClusterRoleBinding', false);
const roles = rbac('roles', 'Role');
export const roleBindings = rbac('rolebindings', 'RoleBinding');
export const BERTH_API = 'system:serviceaccount:berth-system:berth-api';
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:berth-system', 'system:authenticated'];
const MAIN = join(import.meta.dirname, '..', '..', '..', 'api', 'main.ts');

/** Tests send more requests at once than one caller may. */
const ANY_RATE = { BERTH_API_CALLER_RATE: '1000000', BERTH_API_CALLER_BURST: '1000000' };

export interface Rule {
  verbs: string[];
  resources: string[];
}

/** May do all that the API offers. */
export const EVERYTHING: Rule[] = [{ verbs: ['*'], resources: ['sessions', 'turns', 'blobs'] }];

// biome-ignore lint/suspicious/noExplicitAny: the tests check the answers
type Body = any;

export interface Reply {
  status: number;
  headers: Headers;
  body: Body;
  problem: ReturnType<Problem['toJSON']>;
  text: string;
}

export interface Ask {
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** A log that keeps its lines. */
export class KeptLog {
  readonly lines: { message: string; facts: Record<string, unknown> }[] = [];
  readonly logger: Logger;

  constructor() {
    const note = (facts: object, message: string) =>
      void this.lines.push({ message, facts: facts as Record<string, unknown> });
    this.logger = { debug: note, info: note, warn: note, error: note, child: () => this.logger };
  }

  /** Returns what the lines say of connections into sessions. */
  entered(): Record<string, unknown>[] {
    return this.lines.filter(({ message }) => message === 'session entered').map(({ facts }) => facts);
  }

  clear(): void {
    this.lines.length = 0;
  }
}

/** The API as a program of its own. */
export interface ApiProgram {
  child: ChildProcess;
  /** `127.0.0.1:<port>` */
  host: string;
  port: number;
  /** Text on stdout so far. */
  log(): string;
  /** Exit code, once all that the program has said has been read. */
  closed: Promise<number | null>;
}

/**
 * The HTTP API with the rights it has in an installation, on an embedded cluster; callers are service accounts. Its
 * default class has a program, so that sessions need not name one.
 */
export class ApiCluster {
  readonly cluster: Installation;
  readonly url: string;
  /** Server of Node that the API runs on. */
  readonly server: Server;
  readonly close: () => Promise<void>;
  /** Cuts the API's connections to the cluster. */
  readonly cut: () => Promise<void>;
  readonly #closeServer: () => Promise<void>;
  #users = 0;

  private constructor(
    cluster: Installation,
    server: Server,
    { cut, closeServer }: { cut: () => Promise<void>; closeServer: () => Promise<void> },
  ) {
    this.cluster = cluster;
    this.server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.cut = cut;
    this.#closeServer = closeServer;
    this.close = async () => {
      await this.#closeServer();
      await cluster.stop();
    };
  }

  /** `routes`: in place of those of the API. */
  static async start(
    env: Record<string, string> = {},
    routes?: readonly Route[],
    log: Logger = silentLogger,
  ): Promise<ApiCluster> {
    const cluster = await Installation.start();
    await cluster.client.patch(sessionclasses, { name: 'default' }, { spec: { agent: { command: ['cat'] } } });
    const connection = await loadConnection({ path: cluster.kubeconfig });
    let own = cluster.server.mintToken({ username: BERTH_API, groups: GROUPS });
    const api = new KubeClient({
      connection: { ...connection, headers: () => ({ authorization: `Bearer ${own}` }) },
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
      userAgent: 'berth-api',
    });
    const config = parseConfig(apiConfig, { ...ANY_RATE, ...env });
    const parts = { api, config, clock: systemClock, random: systemRandom, log };
    const server = buildServer({ ...parts, ...(routes && { routes }) });
    await server.listen({ port: 0, host: '127.0.0.1' });
    return new ApiCluster(cluster, server.server, {
      cut: async () => {
        const old = own;
        own = cluster.server.mintToken({ username: BERTH_API, groups: GROUPS });
        await cluster.server.revokeToken(old);
      },
      closeServer: async () => {
        await server.close();
        await api.close();
      },
    });
  }

  /** Stops the API server alone. */
  stopServer(): Promise<void> {
    return this.#closeServer();
  }

  /** Starts the API as a program, beside the server of this process. The caller ends it. */
  async startProgram(env: Record<string, string> = {}): Promise<ApiProgram> {
    const { child, out, closed } = this.#spawn(env);
    const started = () => {
      if (child.exitCode !== null) throw new Error(out.stderr);
      return /"port":(\d+),"tls":\w+,"msg":"API started"/.exec(out.stdout)?.[1];
    };
    const port = Number(await eventually(started, { what: 'the API has started' }));
    return { child, host: `127.0.0.1:${port}`, port, log: () => out.stdout, closed };
  }

  /** Resolves with what the program says on stderr when it refuses to start. */
  async refusedStart(env: Record<string, string>): Promise<string> {
    const { out, closed } = this.#spawn(env);
    if ((await closed) !== 1) throw new Error(`it did not refuse: ${out.stdout}${out.stderr}`);
    return out.stderr;
  }

  #spawn(env: Record<string, string>) {
    const own = this.cluster.server.mintToken({ username: BERTH_API, groups: GROUPS });
    const kubeconfig = join(this.cluster.home, 'api.json');
    writeFileSync(kubeconfig, JSON.stringify(this.cluster.server.kubeconfig(own)));
    const child = spawn(process.execPath, [MAIN], {
      env: { PATH: process.env.PATH, KUBECONFIG: kubeconfig, BERTH_API_HOST: '127.0.0.1', BERTH_API_PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const out = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (chunk: string) => {
        out[name] += chunk;
      });
    }
    const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
    return { child, out, closed };
  }

  /** A token of a new service account of `default` with these rights there. */
  async user(rules: Rule[], audience = 'berth'): Promise<{ name: string; token: string }> {
    const name = `user-${++this.#users}`;
    const { client } = this.cluster;
    const metadata = { name, namespace: 'default' };
    await client.create(serviceAccounts, { metadata });
    const apiGroups = ['berth.dev'];
    await client.create(roles, { metadata, rules: rules.map((rule) => ({ ...rule, apiGroups })) } as never);
    await client.create(roleBindings, {
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    } as never);
    const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`;
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [audience] } };
    const { status } = (await client.raw('POST', path, { body })) as { status: { token: string } };
    return { name: `system:serviceaccount:default:${name}`, token: status.token };
  }

  /** A token of a new service account that may read the metrics and nothing else. */
  async scraper(): Promise<{ name: string; token: string }> {
    const scraper = await this.user([]);
    const { client } = this.cluster;
    const metadata = { name: 'metrics-reader' };
    const rules = [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }];
    await client.create(clusterRoles, { metadata, rules } as never);
    await client.create(clusterRoleBindings, {
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: scraper.name }],
    } as never);
    return scraper;
  }

  async call(method: string, path: string, { token, body, headers, signal }: Ask = {}): Promise<Reply> {
    const answer = await fetch(this.url + path, {
      method,
      headers: {
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw(body) ? body : JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
    const text = await answer.text();
    const isJson = answer.headers.get('content-type')?.includes('json');
    const parsed = isJson && text !== '' ? JSON.parse(text) : undefined;
    const { status } = answer;
    assert.deepEqual(undocumented(method, path, { status, headers: answer.headers, body: parsed }), [], text);
    return { status, headers: answer.headers, body: parsed, problem: parsed, text };
  }
}

/** A body that is sent as it is. */
const isRaw = (body: unknown): body is string | Buffer<ArrayBuffer> =>
  typeof body === 'string' || Buffer.isBuffer(body);
