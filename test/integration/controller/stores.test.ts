import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import type { StoredSession } from '../../../core/resources/kinds.ts';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { type Installation, ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const storing = ({ resource, verb }: RequestFacts) => resource === 'blobs' && verb === 'create';
const broken = { status: 'Failure', code: 500, reason: 'InternalError', message: 'the disk is on fire' } as never;
const SCRATCH = mkdtempSync(join(tmpdir(), 'berth-stores-'));
afterAll(() => rmSync(SCRATCH, { recursive: true, maxRetries: 10 }));

/** Writes a state of `input` bytes that cannot be compressed, and a little more when `idle` says that its first turn has ended. */
const WRITER = pythonAgent(`
import subprocess
path = state + '/f'
before = os.path.getsize(path) if os.path.exists(path) else 0
open(path, 'wb').write(os.urandom(request['input']))
late = os.path.getsize(state + '/late') if os.path.exists(state + '/late') else 0
subprocess.Popen(['sh', '-c', 'cd ${SCRATCH}; [ -e $0-late ] && exit; until [ -e $0-ended ]; do sleep 0.1; done; head -c 20000 /dev/urandom > $BERTH_STATE_DIR/late; touch $0-late', request['session']['name']], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
answer({'before': before, 'late': late})
`);

/** Has the state changed, so that it differs from the one that its turn has left, then the session idle. */
async function idle(cluster: Installation, session: string): Promise<void> {
  writeFileSync(join(SCRATCH, `${session}-ended`), '');
  await eventually(() => existsSync(join(SCRATCH, `${session}-late`)), { what: 'the late part of the state' });
  await cluster.patch(session, { timeouts: { idle: '1s' } });
}

const persisted = ({ status }: StoredSession) => status?.conditions?.find(({ type }) => type === 'StatePersisted');

describe.concurrent('a store that fails', () => {
  const cluster = installed(ONE_LEADER, { controller: true });

  test('costs a turn its success after timeouts.persist, never its output, and holds no slot after that', async () => {
    await cluster.create('unstored', { agent: WRITER, timeouts: { persist: '5s' }, suspend: true });
    await cluster.turn('unstored', 'unstored-1', 30_000);
    let refused = 0;
    cluster.server.faults.failNext((request) => storing(request) && ++refused > 0, broken, 1000);
    await cluster.patch('unstored', { suspend: false });
    const said = await cluster.until('unstored', 'says so', (session) => persisted(session)?.status === 'False');
    assert.equal(persisted(said)?.reason, 'StateNotStored');
    const { status } = await cluster.ended('unstored-1');
    assert.deepEqual(
      [status?.phase, status?.error?.code, status?.output],
      ['Failed', 'StateNotStored', { before: 0, late: 0 }],
    );
    assert.match(status?.error?.message ?? '', /the disk is on fire/);
    assert.ok(refused > 1, 'it was tried again');
    await cluster.until('unstored', 'without its pod', (session) => !session.status?.podName);
  });
});

// A store that fails or is slow is so for all sessions of its cluster: one test after the other.
describe.concurrent('a store', () => {
  const cluster = installed(ONE_LEADER, { controller: true });
  const suspended = (name: string) =>
    cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended' && !status.podName);

  test.sequential('that fails for a while only delays the result', async () => {
    cluster.server.faults.failNext(storing, broken, 3);
    await cluster.create('delayed', { agent: WRITER, input: 30_000 });
    assert.equal((await cluster.ended('delayed')).status?.phase, 'Succeeded');
  });

  test.sequential('that is slow delays the session that waits for it and no other', async () => {
    await cluster.create('quick', { agent: pythonAgent('answer(1)'), input: 1 });
    await cluster.ended('quick');
    let asked = 0;
    let isSlow = true;
    cluster.server.faults.delayNext((request) => isSlow && storing(request) && ++asked > 0, 60_000, 1000);
    await cluster.create('slow', { agent: WRITER, input: 30_000 });
    await eventually(() => asked > 0, { what: 'the slow store is asked' });
    for (const turn of ['quick-2', 'quick-3']) {
      await cluster.turn('quick', turn, 1);
      assert.equal((await cluster.ended(turn)).status?.phase, 'Succeeded');
    }
    const slow = await cluster.turnUntil('slow', 'seen', () => true);
    assert.equal(slow.status?.phase, 'Running');
    isSlow = false;
    assert.equal((await cluster.ended('slow')).status?.phase, 'Succeeded');
  });

  test.sequential('that does not take the state of an idle session lets it keep its pod until it does', async () => {
    // The write that succeeds in the end is limited by `timeouts.persist` as well.
    await cluster.create('kept', { agent: WRITER, timeouts: { persist: '5s' }, input: 1 });
    await cluster.ended('kept');
    let failing = true;
    cluster.server.faults.failNext((request) => storing(request) && failing, broken, 1000);
    await idle(cluster, 'kept');
    await cluster.event('kept', 'StateNotStored');
    const aborted = await cluster.until('kept', 'says so', (session) => persisted(session)?.status === 'False');
    failing = false;
    assert.ok(aborted.status?.podName);
    assert.equal(persisted(aborted)?.reason, 'StateNotStored');
    assert.equal(persisted(await suspended('kept'))?.status, 'True');
    await cluster.turn('kept', 'kept-2', 1);
    assert.deepEqual((await cluster.ended('kept-2')).status?.output, { before: 1, late: 20_000 });
  });

  test.sequential('that does not give a state back within timeouts.persist is named, and the session goes on when it does', async () => {
    await cluster.create('unread', { agent: WRITER, timeouts: { idle: '1s' }, input: 30_000 });
    assert.equal((await cluster.ended('unread')).status?.phase, 'Succeeded');
    await suspended('unread');
    await cluster.patch('unread', { timeouts: { persist: '1s' } });
    let isStuck = true;
    const reading = ({ resource, verb }: RequestFacts) => isStuck && resource === 'blobs' && verb === 'get';
    cluster.server.faults.delayNext(reading, 60_000, 1000);
    await cluster.turn('unread', 'unread-2', 1);
    const ready = (session: Awaited<ReturnType<typeof suspended>>) =>
      session.status?.conditions?.find(({ type }) => type === 'Ready');
    const said = await cluster.until('unread', 'says so', (session) => ready(session)?.reason === 'StateUnavailable');
    assert.match(ready(said)?.message ?? '', /did not answer within timeouts\.persist/);
    isStuck = false;
    assert.equal((await cluster.ended('unread-2')).status?.phase, 'Succeeded');
  });

  test.sequential('that answers slowly does not hold up a turn that comes meanwhile', async () => {
    await cluster.create('needed', { agent: WRITER, input: 1 });
    await cluster.ended('needed');
    let asked = 0;
    let isSlow = true;
    // The controller asks the store again soon. The store stays slow until the turn exists.
    cluster.server.faults.delayNext((request) => isSlow && storing(request) && ++asked > 0, 60_000, 1000);
    await idle(cluster, 'needed');
    await eventually(() => asked > 0, { what: 'the state is about to be stored' });
    await cluster.turn('needed', 'needed-2', 1);
    isSlow = false;
    const { status } = await cluster.ended('needed-2');
    assert.deepEqual([status?.phase, status?.incarnation], ['Succeeded', 1]);
  });
});

describe.concurrent('a full store', () => {
  const cluster = installed({ ...ONE_LEADER, BERTH_STORE_CEILING_BYTES: '140000' }, { controller: true });

  test('does not take a state, which is said, and the pod stays until there is room', async () => {
    const filler = pythonAgent(`open(state + '/f', 'wb').write(os.urandom(35000))\nanswer(1)`);
    await cluster.create('filler', { agent: filler, input: 1 });
    assert.equal((await cluster.ended('filler')).status?.phase, 'Succeeded');
    await cluster.create('waits', { agent: WRITER, input: 1 });
    assert.equal((await cluster.ended('waits')).status?.phase, 'Succeeded');
    await idle(cluster, 'waits');
    await cluster.event('waits', 'StateNotStored');
    const said = await cluster.until('waits', 'says so', (session) => persisted(session)?.status === 'False');
    assert.ok(said.status?.podName);
    assert.match(persisted(said)?.message ?? '', /has no room/);
    await cluster.delete('filler');
    await cluster.until('waits', 'suspended', (session) => session.status?.phase === 'Suspended');
    await cluster.turn('waits', 'waits-2', 1);
    assert.deepEqual((await cluster.ended('waits-2')).status?.output, { before: 1, late: 20_000 });
  });
});
