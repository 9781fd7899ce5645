/** What scenarios run on: an embedded cluster with the HTTP API, and what stands ready in it. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../core/kube/errors.ts';
import { sessionclasses, sessions, turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { ApiCluster, type ApiProgram, EVERYTHING } from '../integration/api/support.ts';
import { eventually } from '../support/eventually.ts';
import { ONE_LEADER } from '../support/installation.ts';

const AGENT = join(import.meta.dirname, 'agent.py');
const AGENT_MODULE = join(import.meta.dirname, '../../clients/python');
/** Size of the prepared artifact, the largest that there can be. */
const ARTIFACT_BYTES = 16 * 1024 * 1024;
/** Session whose only turn has left the artifact. */
const STORE = 'store';
/** Bytes of a session that lists have in pages: a page has 4 MiB. */
const LISTED_BYTES = 40_000;
/** Sessions of the class `few` that have a pod at the same time. */
const FEW = 12;
/** Creates at a time. */
const AT_ONCE = 4;

/** Names of so many sessions that a list has, in their order. */
export const listedNames = (count: number): string[] => Array.from({ length: count }, (_, at) => `listed-${at}`).sort();

export class Bench {
  readonly api: ApiCluster;
  readonly token: string;
  /** A token that is refused. */
  readonly wrongToken: string;
  /** sha256 of the prepared artifact, hex. */
  readonly artifact: string;
  /** Sessions with an idle pod, one for each run at a time. */
  readonly lanes: readonly string[];
  readonly #runsFile: string;
  /** Name of the service account that all clients are. */
  readonly #account: string;
  #listed: Promise<void> | undefined;
  /** Programs by their environment. */
  readonly #programs = new Map<string, Promise<ApiProgram>>();

  private constructor(
    api: ApiCluster,
    {
      token,
      wrongToken,
      artifact,
      lanes,
      runsFile,
      account,
    }: Record<'token' | 'wrongToken' | 'artifact' | 'runsFile' | 'account', string> & { lanes: string[] },
  ) {
    this.api = api;
    this.token = token;
    this.wrongToken = wrongToken;
    this.artifact = artifact;
    this.lanes = lanes;
    this.#runsFile = runsFile;
    this.#account = account;
  }

  static async start(lanes: number): Promise<Bench> {
    // All runs have one caller, and download large files at the same time.
    const api = await ApiCluster.start({ BERTH_API_CALLER_SHARE: '100' });
    const { client, home } = api.cluster;
    const runsFile = join(home, 'runs');
    const env = { RUNS_FILE: runsFile, AGENT_MODULE: AGENT_MODULE };
    const agent = { command: ['python3', AGENT], env: Object.entries(env).map(([name, value]) => ({ name, value })) };
    await client.patch(sessionclasses, { name: 'default' }, { spec: { agent, artifacts: { maxBytes: '16Mi' } } });
    const few = { metadata: { name: 'few' }, spec: { agent, limits: { maxRunning: FEW } } };
    await client.create(sessionclasses, few as never);
    api.cluster.startController(ONE_LEADER);
    const { name: user, token } = await api.user([...EVERYTHING, { verbs: ['*'], resources: ['approvals'] }]);
    const ofLanes = Array.from({ length: lanes }, (_, lane) => `lane-${lane}`);
    await Promise.all(
      [...ofLanes, STORE].map(async (name) => {
        await api.cluster.create(name, {});
        const input = { mark: name, ...(name === STORE && { files: { 'large.bin': ARTIFACT_BYTES } }) };
        await api.cluster.turn(name, `${name}-first`, input);
        const { status } = await api.cluster.ended(`${name}-first`);
        assert.equal(status?.phase, 'Succeeded', status?.error?.message);
      }),
    );
    const pattern = Buffer.from(Array.from({ length: 251 }, (_, byte) => byte));
    const content = Buffer.alloc(ARTIFACT_BYTES, pattern);
    const artifact = createHash('sha256').update(content).digest('hex');
    const account = user.split(':').at(-1) as string;
    const wrongToken = `${token.slice(0, -20)}${'x'.repeat(20)}`;
    return new Bench(api, { token, wrongToken, artifact, lanes: ofLanes, runsFile, account });
  }

  /** Port of the server in this process. */
  get port(): number {
    return Number(new URL(this.api.url).port);
  }

  /** Port of the API as a program with this environment, which is started where there is none. */
  async program(env: Record<string, string>): Promise<number> {
    const key = JSON.stringify(env);
    const program = this.#programs.get(key) ?? this.api.startProgram(env);
    this.#programs.set(key, program);
    return (await program).port;
  }

  /** Kills the program and starts another; resolves with its port. */
  async restart(env: Record<string, string>): Promise<number> {
    await this.#end(JSON.stringify(env));
    return this.program(env);
  }

  /** Resolves when the sessions `listed-N` are there, so many, with the label `listed=yes`. All callers want the same number. */
  list(count: number): Promise<void> {
    this.#listed ??= this.#list(count);
    return this.#listed;
  }

  async #list(count: number): Promise<void> {
    const annotations = { note: 'x'.repeat(LISTED_BYTES) };
    const names = listedNames(count).values();
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (const name of names) {
          const metadata = { name, namespace: 'default', labels: { listed: 'yes' }, annotations };
          const session = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', metadata, spec: { suspend: true } };
          await this.api.cluster.client.create(sessions, session as never);
        }
      }),
    );
  }

  /** Returns a token that is valid for `seconds`. */
  expiringToken(seconds: number): string {
    const account = { namespace: 'default', name: this.#account };
    return this.api.cluster.server.accountToken(account, { audience: 'berth', seconds });
  }

  /** Marks of all inputs that have run, in the order of their beginnings. */
  runs(): string[] {
    return readFileSync(this.#runsFile, 'utf8')
      .split('\n')
      .filter((mark) => mark !== '');
  }

  /** Cancels what a run that was cut short has left to do in the lane. */
  async free(lane: string): Promise<void> {
    const { client } = this.api.cluster;
    const { items } = await client.list(turns, { namespace: 'default', fieldSelector: `spec.session=${lane}` });
    for (const { metadata, status } of items) {
      if (!isTerminal(status?.phase)) await ifThere(this.api.cluster.cancel(metadata.name));
    }
  }

  /** Deletes the sessions of a run. */
  async clear(run: string): Promise<void> {
    const { client } = this.api.cluster;
    const { items } = await client.list(sessions, { namespace: 'default', labelSelector: `run=${run}` });
    for (const { metadata } of items) await ifThere(this.api.cluster.delete(metadata.name));
  }

  async sessionsOf(run: string): Promise<number> {
    const { items } = await this.api.cluster.client.list(sessions, {
      namespace: 'default',
      labelSelector: `run=${run}`,
    });
    return items.length;
  }

  /** Ends everything. Rejects where an input has run more than once. */
  async close(): Promise<void> {
    const runs = this.runs();
    for (const key of [...this.#programs.keys()]) await this.#end(key);
    await this.api.close();
    assert.deepEqual(
      runs.filter((mark, at) => runs.indexOf(mark) !== at),
      [],
      'inputs that ran again',
    );
  }

  async #end(key: string): Promise<void> {
    // One that has not started is not there to be ended.
    const program = await this.#programs.get(key)?.catch(() => undefined);
    this.#programs.delete(key);
    program?.child.kill('SIGKILL');
    await program?.closed;
  }

  /** Resolves when nothing of the requests is under way any more. */
  settled(isSettled: () => boolean): Promise<unknown> {
    return eventually(isSettled, { what: 'no exchange is under way' });
  }
}
