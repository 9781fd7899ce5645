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
/** Sessions that a list has in pages. */
const LISTED = 27;

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
  #program: ApiProgram | undefined;

  private constructor(
    api: ApiCluster,
    {
      token,
      wrongToken,
      artifact,
      lanes,
      runsFile,
    }: Record<'token' | 'wrongToken' | 'artifact' | 'runsFile', string> & { lanes: string[] },
  ) {
    this.api = api;
    this.token = token;
    this.wrongToken = wrongToken;
    this.artifact = artifact;
    this.lanes = lanes;
    this.#runsFile = runsFile;
  }

  static async start(lanes: number): Promise<Bench> {
    // All runs have one caller, and download large files at the same time.
    const api = await ApiCluster.start({ BERTH_API_CALLER_SHARE: '100' });
    const { client, home } = api.cluster;
    const runsFile = join(home, 'runs');
    const env = { RUNS_FILE: runsFile, AGENT_MODULE: AGENT_MODULE };
    await client.patch(
      sessionclasses,
      { name: 'default' },
      {
        spec: {
          agent: { command: ['python3', AGENT], env: Object.entries(env).map(([name, value]) => ({ name, value })) },
          artifacts: { maxBytes: '16Mi' },
        },
      },
    );
    api.cluster.startController(ONE_LEADER);
    const { token } = await api.user([...EVERYTHING, { verbs: ['*'], resources: ['approvals'] }]);
    const names = Array.from({ length: lanes }, (_, lane) => `lane-${lane}`);
    await Promise.all(
      [...names, STORE].map(async (name) => {
        await api.cluster.create(name, {});
        const input = { mark: name, ...(name === STORE && { files: { 'large.bin': ARTIFACT_BYTES } }) };
        await api.cluster.turn(name, `${name}-first`, input);
        const { status } = await api.cluster.ended(`${name}-first`);
        assert.equal(status?.phase, 'Succeeded', status?.error?.message);
      }),
    );
    // Large, so that a page has room for few.
    const annotations = { note: 'x'.repeat(200_000) };
    for (let at = 0; at < LISTED; at++) {
      const metadata = { name: `listed-${at}`, namespace: 'default', labels: { listed: 'yes' }, annotations };
      await client.create(sessions, { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', metadata, spec: {} } as never);
    }
    const pattern = Buffer.from(Array.from({ length: 251 }, (_, byte) => byte));
    const content = Buffer.alloc(ARTIFACT_BYTES, pattern);
    const artifact = createHash('sha256').update(content).digest('hex');
    const wrongToken = `${token.slice(0, -20)}${'x'.repeat(20)}`;
    return new Bench(api, { token, wrongToken, artifact, lanes: names, runsFile });
  }

  /** Port of the server in this process. */
  get port(): number {
    return Number(new URL(this.api.url).port);
  }

  /** Port of the API as a program, which is started where there is none. */
  async program(): Promise<number> {
    this.#program ??= await this.api.startProgram();
    return this.#program.port;
  }

  /** Kills the program and starts another; resolves with its port. */
  async restart(): Promise<number> {
    await this.#end();
    return this.program();
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
    await this.#end();
    await this.api.close();
    assert.deepEqual(
      runs.filter((mark, at) => runs.indexOf(mark) !== at),
      [],
      'inputs that ran again',
    );
  }

  async #end(): Promise<void> {
    const program = this.#program;
    this.#program = undefined;
    program?.child.kill('SIGKILL');
    await program?.closed;
  }

  /** Resolves when nothing of the requests is under way any more. */
  settled(isSettled: () => boolean): Promise<unknown> {
    return eventually(isSettled, { what: 'no exchange is under way' });
  }
}
