import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../controller/decide/decide.ts';
import type { CachedSession } from '../../../controller/observed/world.ts';
import { settingsDigest } from '../../../controller/settings/session-digest.ts';
import { noteworthy } from '../../../controller/status/events.ts';
import { turns as turnKind } from '../../../core/resources/kinds.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import {
  aClass,
  aLink,
  aPod,
  aSession,
  aTurn,
  aWorld,
  does,
  POD_UID,
  RUNNING_STATUS,
  reasonOf,
  runningTurn,
  type WorldChange,
} from '../../support/world.ts';

type Spec = Partial<CachedSession['spec']>;
const spec = aSession().spec;
const allowing = aClass({
  overrides: ['agent.command', 'agent.env', 'image', 'resources', 'persistence', 'environment', 'timeouts', 'priority'],
});
const bound = { pod: aPod(), link: aLink(), class: allowing };

/** Edits that count from the next pod on. */
const FOR_THE_POD: Spec[] = [
  { agent: { command: ['other'] } },
  { agent: { command: ['agent'], env: [{ name: 'A', value: '1' }] } },
  { image: 'another:1' },
  { resources: { limits: { memory: '2Gi' } } },
  { persistence: { maxState: '1Mi' } },
  { environment: { name: 'tools' } },
];
/** Edits that count at once, at the next turn, or not at all. */
const AT_ONCE: Spec[] = [
  { timeouts: { turn: '1m', idle: '1m' } },
  { suspend: true },
  { suspendRequest: 'now' },
  { restartRequest: 'now' },
  { priority: 3 },
  { concurrencyGroup: { name: 'g', limit: 1 } },
  { ttlAfterFinished: '1h', ttlAfterSuspended: '1h', history: { turns: 1 } },
  { input: { digest: 'd'.repeat(64), bytes: 7 } },
];

describe('a session that was edited after its pod was made', () => {
  const made: SessionStatus = { ...RUNNING_STATUS, settingsDigest: settingsDigest(spec) };
  const outdated = (change: Spec, status = made, world: WorldChange = {}) => {
    const decision = decide(aWorld({ ...bound, session: aSession({ spec: change, status }), ...world }));
    return decision.status.conditions?.find(({ type }) => type === 'Outdated');
  };
  for (const change of FOR_THE_POD) {
    test(`is Outdated where the pod has what was edited: ${JSON.stringify(change)}`, () => {
      const condition = outdated(change);
      assert.deepEqual([condition?.status, condition?.reason], ['True', 'SessionChanged']);
      assert.match(condition?.message ?? '', /`berth restart`/);
    });
  }
  for (const change of AT_ONCE) {
    test(`is not where the edit counts without a new pod: ${JSON.stringify(change)}`, () => {
      assert.equal(outdated(change), undefined);
    });
  }
  test('is not where the order of keys is all that changed, nor where an earlier release made the pod', () => {
    const [a, b] = [
      { name: 'A', value: '1' },
      { value: '1', name: 'A' },
    ];
    const status = { ...RUNNING_STATUS, settingsDigest: settingsDigest({ ...spec, agent: { env: [a] } } as never) };
    assert.equal(outdated({ agent: { env: [b] } } as never, status), undefined);
    assert.equal(outdated({ image: 'another:1' }, RUNNING_STATUS), undefined);
  });
  test('says which setting would keep its next pod from being made', () => {
    const message = outdated({ image: 'another:1' }, made, { class: aClass() })?.message ?? '';
    assert.match(message, /No pod can be made with them: spec\.image: the class does not allow/);
  });
  test('is told of by an event, and is up to date again with the next pod', () => {
    const session = aSession({ spec: { image: 'another:1' }, status: made });
    const { status } = decide(aWorld({ ...bound, session }));
    assert.deepEqual(
      noteworthy(made, status).map(({ type, reason }) => [type, reason]),
      [['Normal', 'SessionChanged']],
    );
    const gone = { session: aSession({ spec: session.spec, status }), memory: { confirmedGone: { podUID: POD_UID } } };
    const later = decide(aWorld({ ...gone, class: allowing })).status;
    assert.deepEqual([later.settingsDigest, reasonOf(later, 'Outdated')], [undefined, 'UpToDate']);
  });
});

describe('a restart', () => {
  const asked = { restartRequest: 'now' };
  const status: SessionStatus = { ...RUNNING_STATUS, settingsDigest: settingsDigest(spec) };
  const session = aSession({ spec: asked, status });
  const told = { type: 'Finished', status: 'False', reason: 'Queued', message: '', lastTransitionTime: '' } as const;
  const waiting = aTurn({ name: 'b', status: { index: 2, phase: 'Queued', conditions: [told] } });

  test('suspends a session that rests, and says so', () => {
    const decision = decide(aWorld({ ...bound, session }));
    assert.deepEqual(
      decision.actions.map((action) => action.do),
      ['SuspendRunner'],
    );
    assert.equal(decision.status.phase, 'Suspending');
    const suspended = decision.status.conditions?.find(({ type }) => type === 'Suspended');
    assert.match(suspended?.message ?? '', /A restart was asked for/);
  });
  test('waits for the running turn, and not for those behind it', () => {
    const link = aLink({ active: 't-a', sent: new Set(['t-a']) });
    assert.deepEqual(does({ ...bound, session, link, turns: [runningTurn('a'), waiting] }), []);
    assert.deepEqual(does({ ...bound, session, turns: [waiting] }), ['SuspendRunner']);
  });
  test('begins no turn while the last state is on its way into the status', () => {
    const state = { digest: 'a'.repeat(64), keyId: 'k', bytes: 1, incarnation: 1, seq: 4, inline: 'AA==' };
    const ended = aTurn({ name: 'a', status: { index: 1, phase: 'Succeeded', state } });
    const { actions, status: next } = decide(aWorld({ ...bound, session, turns: [ended, waiting] }));
    assert.deepEqual([actions, next.state], [[], state]);
  });
  test('lets turns run while the state cannot be stored', () => {
    const problem = { reason: 'StateNotStored' as const, message: 'too large' };
    const memory = { suspensionFailed: { problem, count: 1, againAt: Number.MAX_SAFE_INTEGER, generation: 1 } };
    assert.deepEqual(does({ ...bound, session, memory, turns: [waiting] }), ['WriteTurn', 'StartTurn']);
  });
  test('gives up a pod whose runner was never bound', () => {
    const starting = { ...bound, session, link: aLink({ phase: 'Unbound' }), turns: [waiting] };
    assert.ok(does(starting).includes('DeletePod'));
  });
  test('is done by a pod that was made with it, and by none', () => {
    const done = aSession({ spec: asked, status: { ...status, restartRequest: 'now' } });
    assert.deepEqual(does({ ...bound, session: done }), []);
    assert.deepEqual(does({ session: aSession({ spec: asked, status: { phase: 'Suspended', incarnation: 1 } }) }), []);
    const gone = { session: done, memory: { confirmedGone: { podUID: POD_UID } } };
    assert.equal(decide(aWorld(gone)).status.restartRequest, undefined);
  });
  test('keeps a pod that could have no successor', () => {
    const forbidden = aSession({ spec: { ...asked, image: 'another:1' }, status });
    assert.deepEqual(does({ ...bound, class: aClass(), session: forbidden }), []);
  });

  test('replaces the pod once, between two turns of a long queue, with the present settings and the state', async () => {
    const world = new QuietWorld();
    await world.start();
    await world.session('busy');
    for (let i = 1; i <= 6; i++) await world.give(`t${i}`, { ms: 2_000, output: 1, state: 100 * i }, 'busy');
    const turn = (i: number) => world.server.get(turnKind, 'team', `t${i}`)?.status;
    await world.until('the second turn runs', () => turn(2)?.phase === 'Running');
    await world.edit('busy', { restartRequest: 'now', timeouts: { turn: '5m' } });
    await world.until('all have ended', () => [1, 2, 3, 4, 5, 6].every((i) => turn(i)?.phase === 'Succeeded'));
    assert.deepEqual(
      [1, 2, 3, 4, 5, 6].map((i) => [turn(i)?.incarnation, turn(i)?.attempt]),
      [
        [1, 1],
        [1, 1],
        [2, 1],
        [2, 1],
        [2, 1],
        [2, 1],
      ],
    );
    const { status: last } = await world.sessionUntil('busy', ({ status }) => status?.turns?.total === 6);
    assert.deepEqual([last?.incarnation, last?.restartRequest], [2, 'now']);
    assert.equal(world.bindings.at(-1)?.restores?.digest, turn(2)?.state?.digest);
    await world.pass(60_000);
    assert.equal((await world.sessionUntil('busy', () => true)).status?.incarnation, 2);
  });
});
