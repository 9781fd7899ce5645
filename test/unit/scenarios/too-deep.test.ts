import assert from 'node:assert/strict';
import { test } from 'vitest';
import { bodyFacts, slimApproval, slimTurn } from '../../../controller/caches/slim.ts';
import { turnFacts } from '../../../controller/garbage/facts.ts';
import { counts } from '../../../controller/observed/approvals.ts';
import { tooDeepAt } from '../../../core/depth.ts';
import { type StoredApproval, type StoredTurn, sessions, turns } from '../../../core/resources/kinds.ts';
import { firstTurnName } from '../../../core/resources/names.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import { aTurn } from '../../support/world.ts';

/** Deeper than recursive code goes, within 128 KiB. */
const POISON = 60_000;
/** Arrays within each other. */
const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const PLAN = { ms: 10, output: 1 };

const stored = (input: unknown) =>
  ({
    metadata: {
      name: 't',
      namespace: 'team',
      uid: 'u',
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { session: 'notes', cancel: false, input },
  }) as unknown as StoredTurn;

test('the path that is nested too deep is named, however deep a value is', () => {
  assert.equal(tooDeepAt(nested(64), 'spec.input'), undefined);
  assert.equal(tooDeepAt('text', 'spec.input'), undefined);
  assert.equal(tooDeepAt({ a: [{ 'b c': [1] }] }, 'spec.input', 4), undefined);
  assert.equal(tooDeepAt({ x: [], a: [0, { 'b c': [1] }] }, 'spec.input', 3), 'spec.input.a[1]["b c"]');
  assert.match(tooDeepAt(nested(POISON), 'spec.input') ?? '', /^spec\.input(\[0\]){64}$/);
});

test('facts of an input that is nested too deep name its path', () => {
  assert.match(bodyFacts(nested(POISON)).tooDeep ?? '', /^spec\.input\[0\]/);
  assert.equal(bodyFacts(nested(64)).tooDeep, undefined);
  const { status, input } = slimTurn(stored(nested(POISON)));
  assert.deepEqual([status, typeof input.tooDeep], [{}, 'string']);
});

test('garbage collection can measure a turn whose input is nested too deep', () => {
  assert.ok(turnFacts(stored(nested(POISON))).bytes > 0);
});

test('an approval whose response is nested too deep counts for nothing', () => {
  const turn = aTurn({ name: 'asks', status: { phase: 'AwaitingApproval', approval: { id: 'r' } as never } });
  const approval = (response: unknown) =>
    slimApproval({
      metadata: { ...stored(1).metadata, name: 'a' },
      spec: { turn: 'asks', requestId: 'r', decision: 'Approve', response },
    } as StoredApproval);
  assert.equal(counts(approval(nested(64)), turn), true);
  assert.equal(counts(approval(nested(POISON)), turn), false);
});

test('a turn whose input is nested too deep fails as InputTooDeep, and the turns before and behind it succeed', async () => {
  const world = new QuietWorld();
  await world.start();
  const session = await world.session('notes');
  await world.give('before', PLAN, 'notes');
  await world.give('poison', nested(3_000) as never, 'notes');
  await world.give('behind', PLAN, 'notes');
  const phase = (name: string) => world.server.get(turns, 'team', name)?.status?.phase;
  await world.until('all turns', () => ['before', 'poison', 'behind'].every((name) => isTerminal(phase(name))));
  assert.deepEqual([phase('before'), phase('behind')], ['Succeeded', 'Succeeded']);
  const poison = world.server.get(turns, 'team', 'poison');
  assert.equal(poison?.status?.error?.code, 'InputTooDeep');
  assert.match(poison?.status?.error?.message ?? '', /^spec\.input: .* at spec\.input\[0\]\[0\]/);
  assert.equal((await world.turn(session, 'last', PLAN)).status?.phase, 'Succeeded');
});

test('a turn of no session whose input is nested too deep waits for its session and can be cancelled', async () => {
  const world = new QuietWorld();
  await world.start();
  await world.give('waits', nested(3_000) as never, 'nobody');
  const status = () => world.server.get(turns, 'team', 'waits')?.status;
  await world.until('a status', () => status()?.phase === 'Queued');
  await world.server.admin.patch(turns, { namespace: 'team', name: 'waits' }, { spec: { cancel: true } });
  await world.until('the end', () => status()?.phase === 'Cancelled');
});

test('a turn of no session that belongs to another session is told that there is none, and fails', async () => {
  const world = new QuietWorld();
  await world.start();
  const { metadata } = await world.session('other');
  const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 'other', uid: metadata.uid };
  await world.give('foreign', PLAN, 'nobody', { ownerReferences: [owner] });
  const status = () => world.server.get(turns, 'team', 'foreign')?.status;
  await world.until('a status', () => status()?.phase === 'Queued');
  assert.equal(status()?.conditions?.[0]?.reason, 'SessionNotFound');
  await world.pass(11 * 60_000);
  assert.deepEqual([status()?.phase, status()?.error?.code], ['Failed', 'SessionNotFound']);
  const committed = world.logged.filter(({ message }) => message === 'turn committed').map(({ fields }) => fields);
  assert.deepEqual(
    committed.map(({ session, uid, turn, code }) => [session, uid, turn, code]),
    [['team/nobody', undefined, 'foreign', 'SessionNotFound']],
  );
});

test('a session whose own input is nested too deep says so, and starts once it is not', async () => {
  const world = new QuietWorld();
  await world.start();
  const spec = { class: 'default', turns: 'One', input: nested(3_000) };
  const metadata = { namespace: 'team', name: 'run' };
  await world.server.admin.create(sessions, {
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'Session',
    metadata,
    spec,
  } as never);
  const { status } = await world.sessionUntil('run', (session) => session.status !== undefined);
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  assert.equal(ready?.reason, 'InputTooDeep');
  assert.match(ready?.message ?? '', /^spec\.input: /);
  await world.pass(60_000);
  assert.equal(world.server.get(turns, 'team', firstTurnName('run')), undefined);
  await world.server.admin.patch(sessions, metadata, { spec: { input: PLAN } });
  const done = await world.sessionUntil('run', (session) => session.status?.phase === 'Finished');
  assert.equal(done.status?.lastTurn?.phase, 'Succeeded');
});
