import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { bindRunner } from '../../../../controller/act/bind.ts';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { StatePrefetch } from '../../../../controller/act/state-prefetch.ts';
import { Archives } from '../../../../controller/environments/archives.ts';
import type { Contents } from '../../../../controller/link/options.ts';
import { filesDigest } from '../../../../controller/observed/agent-files.ts';
import type { LinkView } from '../../../../controller/observed/link-view.ts';
import type { CachedSession, World } from '../../../../controller/observed/world.ts';
import { effective, isProblem } from '../../../../controller/settings/effective.ts';
import { environmentOf, mayBecomeReady } from '../../../../controller/settings/environment.ts';
import { CONTROLS, RESEALS_SINCE } from '../../../../core/frames/catalogue.ts';
import { type Bind, PROTOCOL_VERSION } from '../../../../core/frames/messages.ts';
import { stateKey } from '../../../../core/frames/seal.ts';
import type { ConfigMap } from '../../../../core/kube/builtin.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { Resource } from '../../../../core/kube/types.ts';
import type { StoredEnvironment } from '../../../../core/resources/kinds.ts';
import { StoreMissingError } from '../../../../core/store/store.ts';
import { silentLogger, systemClock } from '../../../../core/system.ts';
import { HEURISTICS } from '../../../../core/text/hidden.ts';
import {
  aClass,
  aLink,
  aMemory,
  aSession,
  aTurn,
  aWorld,
  NOW,
  POD_UID,
  RUNNING_STATUS,
} from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

interface Case {
  phase?: LinkView['phase'];
  /** The ConfigMap "mine" of the namespace. */
  configMap?: ConfigMap;
  protocol?: number;
  spec?: Partial<CachedSession['spec']>;
  status?: Partial<NonNullable<CachedSession['status']>>;
  turns?: World['turns'];
  /** The incarnation that made the session's volume. */
  volumeOf?: number;
  /** The session that built the environment. */
  build?: object | undefined;
  ofClass?: Parameters<typeof aClass>[0];
  /** Id of the current master key. */
  current?: string;
}

const MASTERS = new Map([
  ['k', Buffer.alloc(32, 1)],
  ['new', Buffer.alloc(32, 2)],
]);

async function bind(change: Case) {
  const {
    protocol = PROTOCOL_VERSION,
    phase = 'Unbound',
    spec = {},
    status = {},
    turns = [],
    volumeOf,
    ofClass,
    configMap,
    build,
    current = 'k',
  } = change;
  const sessionClass = aClass({ overrides: ['agent.command', 'agent.files', 'persistence'], ...ofClass });
  const session = aSession({ spec, status: { ...RUNNING_STATUS, ...status } });
  const world = aWorld({ session, class: sessionClass, turns, link: aLink({ protocol, phase }) });
  const settings = effective(session, sessionClass, world.installation);
  assert.ok(!isProblem(settings), JSON.stringify(settings));
  const sent: Bind[] = [];
  const given: Contents['files'][] = [];
  const shown: unknown[] = [];
  const link = {
    view: { podUID: POD_UID },
    bind: (message: Bind, { files }: Contents) => {
      sent.push(message);
      given.push(files);
    },
  };
  const volume = { metadata: { labels: { 'berth.dev/incarnation': String(volumeOf) } } };
  const notFound = new ApiError({ code: 404, reason: 'NotFound', message: 'not found' });
  const missing = async () => {
    throw new StoreMissingError('the archive');
  };
  const api = {
    get: async ({ plural }: Resource) => {
      const found = { configmaps: configMap, sessions: build, persistentvolumeclaims: volumeOf && volume }[plural];
      if (!found) throw notFound;
      return found;
    },
  };
  const context = {
    effects: {
      ...writesOver(api, (object) => shown.push(object)),
      clock: systemClock,
      withoutWorker: (work: () => unknown) => work(),
      store: { get: missing },
      archives: new Archives(),
      statePrefetch: new StatePrefetch(systemClock),
      links: { get: (uid: string) => (uid === POD_UID ? link : undefined) },
      caches: { relistAgentFiles: async () => shown.push('all') },
      keys: { current: { id: current, key: MASTERS.get(current) }, byId: MASTERS },
      log: silentLogger,
    },
    world,
    memory: aMemory(),
    key: 'team/notes',
    signal: new AbortController().signal,
  } as unknown as ReconcileContext;
  await bindRunner(context, settings);
  const { startProblem, contentsLost } = context.memory.incarnation;
  const { lostEnvironment } = context.memory;
  return { bound: sent[0], problem: startProblem?.reason, files: given[0], contentsLost, lostEnvironment, shown };
}

describe('the key of a state', () => {
  const inline = Buffer.from('sealed').toString('base64');
  const state = { digest: 'd', keyId: 'k', bytes: 1, incarnation: 1, seq: 7, inline };
  const key = (id: string) => ({
    keyId: id,
    key: stateKey(MASTERS.get(id) as Buffer, aSession({}).metadata.uid).toString('base64'),
  });
  test('is the current one after a rotation, and what was sealed before comes with its own', async () => {
    const { bound } = await bind({ status: { state, incarnation: 2 }, current: 'new' });
    assert.deepEqual(bound?.state, key('new'));
    assert.deepEqual(bound?.restores, { digest: 'd', incarnation: 1, seq: 7, sealedWith: key('k') });
  });
  test('stays the one that it was sealed with for a runner that knows of one key only', async () => {
    const { bound } = await bind({
      status: { state, incarnation: 2 },
      current: 'new',
      protocol: RESEALS_SINCE - 1,
    });
    assert.deepEqual([bound?.state, bound?.restores?.sealedWith], [key('k'), undefined]);
  });
  test('is named once where nothing was rotated', async () => {
    const { bound } = await bind({ status: { state, incarnation: 2 } });
    assert.deepEqual([bound?.state, bound?.restores?.sealedWith], [key('k'), undefined]);
  });
});

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

  test('goes again to a runner that was bound by a leader of another release, with what it lacks', async () => {
    const { bound, problem } = await bind({ protocol: PROTOCOL_VERSION - 2, phase: 'Bound' });
    assert.deepEqual([bound?.protocol, problem], [PROTOCOL_VERSION, undefined]);
  });

  test('carries where the class hides what looks like a secret; a class that says nothing leaves it to the runner', async () => {
    for (const heuristics of HEURISTICS) {
      const { bound } = await bind({ ofClass: { redaction: { heuristics } } });
      assert.equal(bound?.heuristics, heuristics);
    }
    assert.ok(!Object.hasOwn((await bind({})).bound ?? {}, 'heuristics'));
  });

  const ranBefore = aTurn({ status: { index: 1, phase: 'Queued', attempt: 1 } });
  const runsNow = aTurn({ status: { index: 1, phase: 'Running', attempt: 1 } });
  const endedIn = (incarnation: number, podUID?: string) =>
    aTurn({ status: { index: 1, phase: 'Failed', attempt: 1, incarnation, ...(podUID ? { podUID } : {}) } });
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
    [
      'a later incarnation after a turn that an earlier one ran and the session does not count yet',
      true,
      { status: { incarnation: 2 }, turns: [endedIn(1, 'pod-1'), aTurn()] },
    ],
    [
      'a later incarnation after a turn that ended before it was given to a pod, or in this one',
      undefined,
      { status: { incarnation: 2 }, turns: [endedIn(1), endedIn(2, 'pod-2'), aTurn()] },
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
    const { bound, files: given, contentsLost } = await bind({ ...recording(mine('1')), configMap: mine('1') });
    assert.deepEqual([bound?.files, given?.length, contentsLost], [{ due: true }, 1, undefined]);
  });

  for (const [what, found, reason] of [
    ['were edited since', mine('2'), 'AgentFilesChanged'],
    ['were deleted since', undefined, 'AgentFilesMissing'],
    ['lost their label since', mine('1', { labels: {} }), 'AgentFilesMissing'],
  ] as const) {
    test(`gives none that ${what}: the pod is to go, and the cache has what was read`, async () => {
      const { bound, contentsLost, shown } = await bind({
        ...recording(mine('1')),
        ...(found ? { configMap: found } : {}),
      });
      assert.deepEqual([bound, contentsLost?.podUID, contentsLost?.problem.reason], [undefined, POD_UID, reason]);
      assert.deepEqual(shown, [found ?? 'all']);
    });
  }

  test('gives none of a ConfigMap that the status does not record', async () => {
    const { spec = {} } = recording(mine('1'));
    const { bound, contentsLost } = await bind({ spec, configMap: mine('1') });
    assert.deepEqual([bound, contentsLost?.problem.reason], [undefined, 'AgentFilesChanged']);
  });
});

test('a runner of a protocol before environments takes none and builds none', async () => {
  const before = { protocol: CONTROLS.environment.since - 1, phase: 'Bound' as const };
  const archive = { session: 'env-1', sessionUID: 'b', digest: 'd', keyId: 'k', bytes: 1, incarnation: 1, seq: 1 };
  const environment = { name: 'tools', hash: 'h', archive: { ...archive, inline: 'QUJD' } };
  for (const change of [{ status: { environment } as never }, { spec: { build: 'Environment' } as never }]) {
    const { bound, problem } = await bind({ ...before, ...change });
    assert.deepEqual([bound, problem], [undefined, 'ProtocolUnsupported']);
  }
});

describe('the archive of an environment', () => {
  const archive = { session: 'env-1', sessionUID: 'build-1', digest: 'd'.repeat(64), keyId: 'k' };
  const stored = { ...archive, bytes: 9, incarnation: 1, seq: 4, ref: 'build-1/1/4' };
  const having = (of: object) => ({ status: { environment: { name: 'tools', hash: 'h', archive: of } as never } });

  test('is given as it was sealed, with the key of the session that built it', async () => {
    const { bound } = await bind(having({ ...archive, bytes: 3, incarnation: 1, seq: 4, inline: 'QUJD' }));
    const { session, keyId, digest } = bound?.environment ?? {};
    assert.deepEqual([session, keyId, digest], ['build-1', 'k', archive.digest]);
    assert.notEqual(bound?.environment?.key, bound?.state.key);
  });

  test('that is gone with the session that built it has the pod given up, and is not taken again', async () => {
    for (const build of [undefined, { metadata: { uid: 'build-2' } }]) {
      const { bound, contentsLost, lostEnvironment } = await bind({ ...having(stored), build });
      assert.deepEqual([bound, contentsLost?.podUID, lostEnvironment], [undefined, POD_UID, 'build-1']);
      assert.equal(contentsLost?.problem.reason, 'EnvironmentUnavailable');
    }
    const environment = anEnvironment({ phase: 'Ready', hash: 'h', archive: stored });
    const session = aSession({ spec: { environment: { name: 'tools' }, class: 'python' } });
    const world = (lostEnvironment?: string) => aWorld({ session, environment, memory: { lostEnvironment } });
    assert.ok('taken' in (environmentOf(world(), 'Embedded') ?? {}));
    assert.deepEqual(problemOf(world('build-1')), 'EnvironmentNotReady');
    assert.equal(problemOf({ ...world('build-1'), environment: 'Missing' }), 'EnvironmentNotReady');
  });

  test('that cannot be read though its session is there is tried again', async () => {
    await assert.rejects(bind({ ...having(stored), build: { metadata: { uid: 'build-1' } } }), StoreMissingError);
  });
});

describe('a session whose environment failed', () => {
  const session = aSession({ spec: { environment: { name: 'tools' }, class: 'python' } });
  test('fails its turns, until the environment may be built again', () => {
    const world = (retryAt?: number) => {
      const again = retryAt === undefined ? {} : { retryAt: new Date(retryAt).toISOString() };
      return aWorld({ session, environment: anEnvironment({ phase: 'Failed', ...again }) });
    };
    for (const [retryAt, reason, waits] of [
      [undefined, 'EnvironmentFailed', false],
      [NOW + 1, 'EnvironmentFailed', false],
      [NOW, 'EnvironmentNotReady', true],
    ] as const) {
      assert.deepEqual([problemOf(world(retryAt)), mayBecomeReady(world(retryAt))], [reason, waits]);
    }
  });
});

function anEnvironment(status: NonNullable<StoredEnvironment['status']>): StoredEnvironment {
  const metadata = { name: 'tools', namespace: 'team', uid: 'e', resourceVersion: '1', creationTimestamp: '' };
  return { metadata, spec: { class: 'python', requirements: [] }, status };
}

function problemOf(world: World): string | undefined {
  const found = environmentOf(world, 'Embedded');
  return found && 'problem' in found ? found.problem.reason : undefined;
}
