import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';
import { type Approval, approvals, type StoredSession } from '../../../core/resources/kinds.ts';
import { approvalName } from '../../../core/resources/names.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { tools } from '../../support/tools.ts';

const run = promisify(execFile);

const ASKS_ONCE = pythonAgent(`
if request['input'] == 'fail': sys.exit(3)
asks = request['input'] == 'ask' and not request.get('approval')
answer('done', **({'status': 'approval', 'prompt': 'Go on?'} if asks else {}))
`);

describe('kubectl', () => {
  const cluster = installed(ONE_LEADER, { controller: true });

  async function kubectl(...args: string[]): Promise<string> {
    const { kubectl: program } = await tools();
    return (await run(program, args, { env: { ...process.env, KUBECONFIG: cluster.kubeconfig } })).stdout;
  }
  /** Rows of a table by the name of their object, without ages: what the cells hold, by their columns. */
  async function rows(...args: string[]): Promise<Record<string, string>[]> {
    const [header = '', ...body] = (await kubectl('get', ...args)).trimEnd().split('\n');
    const starts = [...header.matchAll(/\S+/g)].map(({ 0: name, index }) => ({ name, index }));
    return body.map((line) =>
      Object.fromEntries(
        starts.map(({ name, index }, i) => [name, line.slice(index, starts[i + 1]?.index).trim()] as const),
      ),
    );
  }
  const cells = async (name: string) => {
    const [row = {}] = await rows('session', name);
    return [row.PHASE, row.REASON, row.TURNS, row.LAST];
  };
  /** Events that `kubectl describe session` shows, in alphabetical order: their times have whole seconds. */
  async function story(session: string, last: string): Promise<string[]> {
    return eventually(
      async () => {
        const described = await kubectl('describe', 'session', session);
        const [, table = ''] = described.split(/^Events:\n/m);
        const lines = table.trimEnd().split('\n').slice(2);
        // The columns are type, reason, age, from and message.
        const told = lines.map((line) => {
          const [type, reason, , , message] = line.trim().split(/ {2,}/);
          return `${type} ${reason}: ${message}`;
        });
        return told.some((line) => line.includes(` ${last}: `)) ? told.toSorted() : undefined;
      },
      { what: `event ${last} of session ${session}` },
    );
  }
  const phase =
    (wanted: string) =>
    ({ status }: StoredSession) =>
      status?.phase === wanted;

  test('tells the life of a session: its pods, why it was suspended, what it asked', async () => {
    const { metadata } = await cluster.create('notes', { agent: ASKS_ONCE, timeouts: { idle: '1s' } });
    const pod = (incarnation: number) => `s-${metadata.uid}-${incarnation}`;
    await cluster.until('notes', 'suspended', phase('Suspended'));
    assert.deepEqual(await cells('notes'), ['Suspended', '', '0', '']);
    await cluster.turn('notes', 'notes-1', 'ask');
    const { status } = await cluster.turnUntil('notes-1', 'asks', (turn) => turn.status?.phase === 'AwaitingApproval');
    await cluster.until('notes', 'asks', phase('AwaitingApproval'));
    assert.deepEqual(await cells('notes'), ['AwaitingApproval', '', '0', '']);
    const id = status?.approval?.id ?? '';
    const approval = { turn: 'notes-1', requestId: id, decision: 'Approve' };
    const metadataOf = { name: approvalName(id), namespace: 'default' };
    await cluster.client.create(approvals, { metadata: metadataOf, spec: approval } as Approval);
    assert.equal((await cluster.ended('notes-1')).status?.phase, 'Succeeded');
    assert.deepEqual(await story('notes', 'AwaitingApproval'), [
      `Normal AwaitingApproval: Turn notes-1 asks (request ${id}): Go on?`,
      `Normal PodCreated: Created pod ${pod(1)}: incarnation 1.`,
      `Normal PodCreated: Created pod ${pod(2)}: incarnation 2, for turn notes-1.`,
      'Normal Suspended: The session has no pod. Its state directory is stored, its volume is kept if it has one; its other files and its processes are gone. Its next turn wakes it. Nothing had happened for timeouts.idle (1s).',
    ]);
  });

  test('tells of sessions that end how they ended, and of turns why they failed or wait', async () => {
    await cluster.create('good', { agent: ASKS_ONCE, turns: 'One', input: 'x' });
    await cluster.create('bad', { agent: ASKS_ONCE, turns: 'One', input: 'fail' });
    for (const name of ['good', 'bad']) await cluster.until(name, 'finished', phase('Finished'));
    assert.deepEqual(await cells('good'), ['Finished', '', '1', 'Succeeded']);
    assert.deepEqual(await cells('bad'), ['Finished', 'AgentFailed', '1', 'Failed']);
    const [end, pod, ...more] = await story('good', 'Finished');
    assert.equal(end, 'Normal Finished: The only turn of the session succeeded.');
    assert.match(pod ?? '', /^Normal PodCreated: Created pod s-\S+-1: incarnation 1, for turn good\.$/);
    assert.deepEqual(more, []);
    const [failed = ''] = await story('bad', 'Finished');
    assert.match(failed, /^Normal Finished: AgentFailed: The turn ended Failed\. /);

    await cluster.create('held', { agent: ASKS_ONCE, suspend: true });
    await cluster.turn('held', 'held-1', 'x');
    await cluster.turnUntil('held-1', 'waits', ({ status }) => status?.reason === 'Held');
    const turns = await rows('turns', 'good', 'bad', 'held-1');
    assert.deepEqual(
      turns.map((row) => [row.NAME, row.INDEX, row.PHASE, row.REASON]),
      [
        ['good', '1', 'Succeeded', ''],
        ['bad', '1', 'Failed', 'AgentFailed'],
        ['held-1', '1', 'Queued', 'Held'],
      ],
    );
  });
});
