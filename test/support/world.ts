import { applicantOf } from '../../controller/capacity/applicant.ts';
import type { Action } from '../../controller/decide/actions.ts';
import { type Decision, decide } from '../../controller/decide/decide.ts';
import type { LinkView } from '../../controller/observed/link-view.ts';
import { emptyMemory } from '../../controller/observed/memory.ts';
import type {
  CachedSession,
  CachedTurn,
  IncarnationMemory,
  SessionMemory,
  World,
} from '../../controller/observed/world.ts';
import { type FrameOf, PROTOCOL_VERSION, type Result } from '../../core/frames/messages.ts';
import type { StoredPod } from '../../core/kube/builtin.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';

/** Builders of observed worlds for table tests of decisions: plain defaults, and the facts of a case. */

export const NOW = Date.parse('2026-01-01T12:00:00Z');
export const SESSION_UID = 'f0000000-0000-4000-8000-000000000001';
export const POD_UID = 'p-1';

const ago = (seconds: number) => new Date(NOW - seconds * 1000).toISOString();

export function aSession(
  change: { spec?: Partial<CachedSession['spec']>; status?: CachedSession['status']; deleting?: boolean } = {},
): CachedSession {
  return {
    metadata: {
      name: 'notes',
      namespace: 'team',
      uid: SESSION_UID,
      resourceVersion: '100',
      generation: 1,
      creationTimestamp: ago(60),
      ...(change.deleting ? { deletionTimestamp: ago(1) } : {}),
    },
    spec: {
      class: 'default',
      suspend: false,
      turns: 'Many',
      agent: { command: ['agent'] },
      ...change.spec,
    },
    ...(change.status ? { status: change.status } : {}),
  } as CachedSession;
}

/** Status of a session whose first incarnation has its pod. */
export const RUNNING_STATUS: NonNullable<CachedSession['status']> = {
  phase: 'Ready',
  incarnation: 1,
  podName: `s-${SESSION_UID}-1`,
  podUID: POD_UID,
  observedGeneration: 1,
};

let turnNumber = 0;
export function aTurn(
  change: {
    name?: string;
    status?: TurnStatus;
    spec?: Partial<CachedTurn['spec']>;
    bytes?: number;
    noInput?: true;
    owner?: string | null;
    age?: number;
  } = {},
): CachedTurn {
  turnNumber++;
  const owner = change.owner === undefined ? SESSION_UID : change.owner;
  return {
    metadata: {
      name: change.name ?? `turn-${turnNumber}`,
      namespace: 'team',
      uid: `t-${change.name ?? turnNumber}`,
      resourceVersion: String(200 + turnNumber),
      creationTimestamp: ago(change.age ?? 10),
      ...(owner
        ? { ownerReferences: [{ apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 'notes', uid: owner }] }
        : {}),
    },
    spec: { session: 'notes', cancel: false, ...change.spec },
    status: change.status ?? {},
    input: { digest: 'd'.repeat(64), bytes: change.bytes ?? 7, ...(change.noInput && { none: true }) },
  };
}

/** Returns a turn that the present pod runs. */
export const runningTurn = (name: string, change: Parameters<typeof aTurn>[0] = {}) =>
  aTurn({
    name,
    ...change,
    status: { index: 1, phase: 'Running', attempt: 1, incarnation: 1, podUID: POD_UID, ...change.status },
  });

export function aPod(
  change: {
    status?: StoredPod['status'];
    deleting?: boolean;
    uid?: string;
    name?: string;
    age?: number;
    incarnation?: number;
    onNode?: boolean;
  } = {},
): StoredPod {
  return {
    metadata: {
      name: change.name ?? `s-${SESSION_UID}-1`,
      namespace: 'team',
      uid: change.uid ?? POD_UID,
      resourceVersion: '300',
      creationTimestamp: ago(change.age ?? 5),
      labels: { 'berth.dev/incarnation': String(change.incarnation ?? 1) },
      ...(change.deleting ? { deletionTimestamp: ago(1) } : {}),
    },
    spec: {
      ...(change.onNode === false ? {} : { nodeName: 'node' }),
      containers: [{ name: 'session', image: 'runner:1' }],
    },
    status: change.status ?? { phase: 'Running' },
  };
}

export const aLink = (change: Partial<LinkView> = {}): LinkView => ({
  podUID: POD_UID,
  openedAt: NOW - 3_600_000,
  phase: 'Bound',
  sent: new Set(),
  resumed: false,
  fresh: true,
  suspendSent: false,
  suspended: false,
  ...change,
});

export function aResult(turn: string, change: Partial<Result> = {}): FrameOf<'result'> {
  return {
    seq: 7,
    kind: 'result',
    binary: Buffer.alloc(0),
    message: {
      turn,
      attempt: 1,
      outcome: 'Succeeded',
      output: { ok: true },
      startedAt: ago(2),
      finishedAt: ago(1),
      state: 'Unchanged',
      leftRunning: [],
      ...change,
    },
  };
}

export const aClass = (spec: Partial<StoredSessionClass['spec']> = {}): StoredSessionClass => ({
  metadata: { name: 'default', uid: 'c', resourceVersion: '1', creationTimestamp: ago(1000), generation: 1 },
  spec: { runner: 'Embedded', overrides: ['agent.command', 'agent.env', 'timeouts'], secrets: [], ...spec },
});

/** Fields of a session's memory and of its incarnation's, side by side. */
export type MemoryChange = Partial<Omit<SessionMemory, 'incarnation'>> & IncarnationMemory & { incarnation?: never };
export type WorldChange = Partial<Omit<World, 'memory'>> & { memory?: MemoryChange };

export function aMemory(change: MemoryChange = {}): SessionMemory {
  const { incarnation, ...memory } = emptyMemory(true);
  const isOfSession = (name: string) => name in memory || name in OPTIONAL;
  const of = (session: boolean) => Object.entries(change).filter(([name]) => isOfSession(name) === session);
  return {
    ...memory,
    ...Object.fromEntries(of(true)),
    incarnation: { ...incarnation, ...Object.fromEntries(of(false)) },
  };
}

type OptionalOf<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T];
/** Fields of a session's memory that an empty one does not have. */
const OPTIONAL: Record<OptionalOf<SessionMemory>, true> = {
  turnCreatedAt: true,
  committed: true,
  firstTurnTried: true,
  firstTurnProblem: true,
  cannotStartSince: true,
  queueWrittenAt: true,
  historyStored: true,
  roomMadeAt: true,
  gaveAt: true,
  countedAt: true,
  filesReadAt: true,
  approvalsReadFor: true,
  lostEnvironment: true,
  failing: true,
};

export function aWorld({ memory, ...change }: WorldChange = {}): World {
  const session = change.session ?? aSession();
  return {
    now: NOW,
    monotonic: change.now ?? NOW,
    clockJumps: [],
    session,
    turns: [],
    approvals: [],
    class: aClass(),
    agentFiles: new Map(),
    environment: undefined,
    pod: undefined,
    otherPods: [],
    link: undefined,
    // A pod that does not start is read once more; most tables do not test that.
    memory: aMemory(memory ?? { podRead: { podUID: POD_UID } }),
    applicant: applicantOf(session, []),
    group: { free: true },
    groupSince: NOW,
    slot: session.status?.podName ? 'Held' : 'Available',
    installation: {
      protocol: PROTOCOL_VERSION,
      runnerImage: 'runner:1',
      pythonRunnerImage: 'python:1',
      builder: { uv: '/uv', script: '/build.py' },
      imagesArePrograms: false,
      nodeGraceMs: 60_000,
    },
    leaderIsReady: true,
    ...change,
  };
}

/** Returns what is decided in this world; see `stepsOf`. */
export const does = (change: WorldChange) => stepsOf(decide(aWorld(change)));

/** Returns what is done by a decision, in order: its actions, and the status that admits the session. */
export const stepsOf = ({ actions, admission }: Pick<Decision, 'actions' | 'admission'>) => [
  ...actions.map((action) => action.do),
  ...(admission ? ['Admit' as const] : []),
];

/** Returns the statuses of turns that are to be written. */
export const written = (actions: readonly Action[]): TurnStatus[] =>
  actions.flatMap((action) => (action.do === 'WriteTurn' || action.do === 'ShowWait' ? [action.status] : []));

/** Returns the reason of a condition. */
export const reasonOf = (status: { conditions?: SessionStatus['conditions'] }, type: string) =>
  status.conditions?.find((condition) => condition.type === type)?.reason;
