import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { bindRunner } from '../../../controller/act/bind.ts';
import type { ReconcileContext } from '../../../controller/act/context.ts';
import { effective, isProblem } from '../../../controller/settings/effective.ts';
import type { CachedSession, World } from '../../../controller/world/world.ts';
import { type Bind, PROTOCOL_VERSION } from '../../../core/frames/messages.ts';
import { ApiError } from '../../../core/kube/errors.ts';
import { silentLogger } from '../../../core/system.ts';
import { HEURISTICS } from '../../../core/text/hidden.ts';
import { aClass, aLink, aSession, aTurn, aWorld, POD_UID, RUNNING_STATUS } from '../../support/world.ts';

interface Case {
  protocol?: number;
  spec?: Partial<CachedSession['spec']>;
  status?: Partial<NonNullable<CachedSession['status']>>;
  turns?: World['turns'];
  /** The incarnation that made the session's volume. */
  volumeOf?: number;
  ofClass?: Parameters<typeof aClass>[0];
}

async function bind({ protocol = PROTOCOL_VERSION, spec = {}, status = {}, turns = [], volumeOf, ofClass }: Case) {
  const sessionClass = aClass({ overrides: ['agent.command', 'persistence'], ...ofClass });
  const session = aSession({ spec, status: { ...RUNNING_STATUS, ...status } });
  const world = aWorld({ session, class: sessionClass, turns, link: aLink({ protocol }) });
  const settings = effective(session, sessionClass, world.installation);
  assert.ok(!isProblem(settings), JSON.stringify(settings));
  const sent: Bind[] = [];
  const volume = { metadata: { labels: { 'berth.dev/incarnation': String(volumeOf) } } };
  const notFound = new ApiError({ code: 404, reason: 'NotFound', message: 'not found' });
  const context = {
    effects: {
      links: { get: (uid: string) => (uid === POD_UID ? { bind: (message: Bind) => sent.push(message) } : undefined) },
      keys: { current: { id: 'k' }, byId: new Map([['k', Buffer.alloc(32, 1)]]) },
      api: { get: () => (volumeOf === undefined ? Promise.reject(notFound) : Promise.resolve(volume)) },
      log: silentLogger,
    },
    world,
    memory: {},
    key: 'team/notes',
    signal: new AbortController().signal,
  } as unknown as ReconcileContext;
  await bindRunner(context, settings);
  return { bound: sent[0], problem: context.memory.startProblem?.reason };
}

describe('bind', () => {
  for (const [apart, understood] of [
    [-2, false],
    [-1, true],
    [0, true],
    [1, true],
    [2, false],
  ] as const) {
    test(`a runner whose protocol is ${apart} versions from the controller’s is ${understood ? 'bound' : 'refused'}`, async () => {
      const { bound, problem } = await bind({ protocol: PROTOCOL_VERSION + apart });
      assert.equal(bound !== undefined, understood);
      assert.equal(problem, understood ? undefined : 'ProtocolUnsupported');
    });
  }

  test('carries where the class hides what looks like a secret; a class that says nothing leaves it to the runner', async () => {
    for (const heuristics of HEURISTICS) {
      const { bound } = await bind({ ofClass: { redaction: { heuristics } } });
      assert.equal(bound?.heuristics, heuristics);
    }
    assert.ok(!Object.hasOwn((await bind({})).bound ?? {}, 'heuristics'));
  });

  const ranBefore = aTurn({ status: { index: 1, phase: 'Queued', attempt: 2 } });
  const volume = {
    persistence: { state: true, workspace: { type: 'Volume', size: '1Gi', mountPath: '/work' } },
  } as const;
  for (const [what, wanted, { spec, ...rest }] of [
    ['a first incarnation', undefined, { status: { incarnation: 1 } }],
    [
      'a first incarnation, though a turn is tried again',
      undefined,
      { status: { incarnation: 1 }, turns: [ranBefore] },
    ],
    ['a later incarnation of a session that never ran a turn', undefined, { status: { incarnation: 2 } }],
    ['a later incarnation of a session that ran a turn', true, { status: { incarnation: 2 }, turns: [ranBefore] }],
    [
      'a later incarnation with the volume of an earlier one',
      false,
      { spec: volume, status: { incarnation: 2 }, turns: [ranBefore], volumeOf: 1 },
    ],
    [
      'a later incarnation whose volume is new',
      true,
      { spec: volume, status: { incarnation: 2 }, turns: [ranBefore], volumeOf: 2 },
    ],
    [
      'a later incarnation whose volume is gone',
      true,
      { spec: volume, status: { incarnation: 2 }, turns: [ranBefore] },
    ],
  ] as [string, boolean | undefined, Case][]) {
    const told =
      wanted === undefined ? 'is told of no restoration' : `is told that its workspace is ${wanted ? 'new' : 'kept'}`;
    test(`${what} ${told}`, async () => {
      const { bound } = await bind({ ...(spec ? { spec } : {}), ...rest });
      assert.equal(bound?.restored?.workspaceReset, wanted);
    });
  }
});
