import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { bindRunner } from '../../../controller/act/bind.ts';
import type { ReconcileContext } from '../../../controller/act/context.ts';
import { effective, isProblem } from '../../../controller/settings/effective.ts';
import { filesDigest } from '../../../controller/world/agent-files.ts';
import type { CachedSession, World } from '../../../controller/world/world.ts';
import { type Bind, PROTOCOL_VERSION } from '../../../core/frames/messages.ts';
import type { ConfigMap } from '../../../core/kube/builtin.ts';
import { ApiError } from '../../../core/kube/errors.ts';
import type { Resource } from '../../../core/kube/types.ts';
import { silentLogger } from '../../../core/system.ts';
import { HEURISTICS } from '../../../core/text/hidden.ts';
import { aClass, aLink, aMemory, aSession, aTurn, aWorld, POD_UID, RUNNING_STATUS } from '../../support/world.ts';

interface Case {
  /** The ConfigMap "mine" of the namespace. */
  configMap?: ConfigMap;
  protocol?: number;
  spec?: Partial<CachedSession['spec']>;
  status?: Partial<NonNullable<CachedSession['status']>>;
  turns?: World['turns'];
  /** The incarnation that made the session's volume. */
  volumeOf?: number;
  ofClass?: Parameters<typeof aClass>[0];
}

async function bind(change: Case) {
  const { protocol = PROTOCOL_VERSION, spec = {}, status = {}, turns = [], volumeOf, ofClass, configMap } = change;
  const sessionClass = aClass({ overrides: ['agent.command', 'agent.files', 'persistence'], ...ofClass });
  const session = aSession({ spec, status: { ...RUNNING_STATUS, ...status } });
  const world = aWorld({ session, class: sessionClass, turns, link: aLink({ protocol }) });
  const settings = effective(session, sessionClass, world.installation);
  assert.ok(!isProblem(settings), JSON.stringify(settings));
  const sent: Bind[] = [];
  const given: Buffer[][] = [];
  const shown: unknown[] = [];
  const link = {
    view: { podUID: POD_UID },
    bind: (message: Bind, _state: unknown, files: Buffer[]) => {
      sent.push(message);
      given.push(files);
    },
  };
  const volume = { metadata: { labels: { 'berth.dev/incarnation': String(volumeOf) } } };
  const notFound = new ApiError({ code: 404, reason: 'NotFound', message: 'not found' });
  const context = {
    effects: {
      links: { get: (uid: string) => (uid === POD_UID ? link : undefined) },
      caches: { sawAgentFiles: async (found: unknown) => shown.push(found) },
      keys: { current: { id: 'k' }, byId: new Map([['k', Buffer.alloc(32, 1)]]) },
      api: {
        get: async ({ plural }: Resource) => {
          const found = plural === 'configmaps' ? configMap : volumeOf === undefined ? undefined : volume;
          if (!found) throw notFound;
          return found;
        },
      },
      log: silentLogger,
    },
    world,
    memory: aMemory(),
    key: 'team/notes',
    signal: new AbortController().signal,
  } as unknown as ReconcileContext;
  await bindRunner(context, settings);
  const { startProblem, filesLost } = context.memory.incarnation;
  return { bound: sent[0], problem: startProblem?.reason, files: given[0], filesLost, shown };
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

  const ranBefore = aTurn({ status: { index: 1, phase: 'Queued', attempt: 1 } });
  const runsNow = aTurn({ status: { index: 1, phase: 'Running', attempt: 1 } });
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
    [
      'a later incarnation that was given the session’s first turn',
      undefined,
      { status: { incarnation: 2 }, turns: [runsNow] },
    ],
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

describe('bind with files of an agent', () => {
  const files = [{ configMap: 'mine' }];
  const labels = { 'berth.dev/agent-files': 'true' };
  const mine = (text: string, change = {}): ConfigMap => ({
    metadata: { name: 'mine', namespace: 'team', labels, ...change },
    data: { 'agent.py': text },
  });
  const recording = (configMap: ConfigMap): Case => ({
    spec: { agent: { command: ['agent'], files } },
    status: { agentFiles: [{ configMap: 'mine', digest: filesDigest(configMap) }] },
  });

  test('gives those that the status records', async () => {
    const { bound, files: given, filesLost } = await bind({ ...recording(mine('1')), configMap: mine('1') });
    assert.deepEqual([bound?.files, given?.length, filesLost], [{ due: true }, 1, undefined]);
  });

  for (const [what, found, reason] of [
    ['were edited since', mine('2'), 'AgentFilesChanged'],
    ['were deleted since', undefined, 'AgentFilesMissing'],
    ['lost their label since', mine('1', { labels: {} }), 'AgentFilesMissing'],
  ] as const) {
    test(`gives none that ${what}: the pod is to go, and the cache has what was read`, async () => {
      const { bound, filesLost, shown } = await bind({
        ...recording(mine('1')),
        ...(found ? { configMap: found } : {}),
      });
      assert.deepEqual([bound, filesLost?.podUID, filesLost?.problem.reason], [undefined, POD_UID, reason]);
      assert.deepEqual(shown, [found]);
    });
  }

  test('gives none of a ConfigMap that the status does not record', async () => {
    const { spec = {} } = recording(mine('1'));
    const { bound, filesLost } = await bind({ spec, configMap: mine('1') });
    assert.deepEqual([bound, filesLost?.problem.reason], [undefined, 'AgentFilesChanged']);
  });
});
