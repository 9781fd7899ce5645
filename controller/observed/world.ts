import type { StoredPod } from '../../core/kube/builtin.ts';
import type { ApprovalSpec } from '../../core/resources/approval.ts';
import type {
  StoredApproval,
  StoredEnvironment,
  StoredSession,
  StoredSessionClass,
  StoredTurn,
} from '../../core/resources/kinds.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import type { TurnSpec, TurnStatus } from '../../core/resources/turn.ts';
import type { ClockJump } from '../../core/runtime.ts';
import type { Shortage } from '../../core/store/store.ts';
import type { Applicant, GroupView } from './capacity-view.ts';
import type { LinkView } from './link-view.ts';

/** Digest and size of a body that the cache dropped: enough to detect a change and an oversize. */
export interface BodyFacts {
  /** sha256 of the JSON, hex. */
  digest: string;
  bytes: number;
  /** True if there is no body, or null. */
  none?: true;
  /** Path at which the body is nested too deep; digest and bytes are unknown then. */
  tooDeep?: string;
}

/** A Session without the body of its input, but for one that nobody has written a status of: its first turn is made of it. */
export type CachedSession = Omit<StoredSession, 'spec'> & {
  spec: Omit<StoredSession['spec'], 'input'> & { input?: BodyFacts & { body?: unknown } };
};

/** A Turn without its bodies. */
export interface CachedTurn {
  metadata: Pick<
    StoredTurn['metadata'],
    'name' | 'namespace' | 'uid' | 'resourceVersion' | 'creationTimestamp' | 'deletionTimestamp' | 'ownerReferences'
  >;
  spec: Pick<TurnSpec, 'session' | 'timeout' | 'retry' | 'cancel' | 'requester'>;
  status: TurnStatus;
  input: BodyFacts;
  /**
   * Internal error that keeps the controller from processing the turn; such a turn has only the fields that its end
   * needs.
   */
  unreadable?: string;
}

/** An Approval without the body of its response. */
export interface CachedApproval {
  metadata: Pick<
    StoredApproval['metadata'],
    | 'name'
    | 'namespace'
    | 'uid'
    | 'resourceVersion'
    | 'generation'
    | 'creationTimestamp'
    | 'deletionTimestamp'
    | 'ownerReferences'
  >;
  spec: Pick<ApprovalSpec, 'turn' | 'requestId' | 'decision' | 'requester'>;
  responseBytes: number;
  /** Path at which the response is nested too deep; `responseBytes` is unknown then. */
  responseTooDeep?: string;
}

/** Settings of the installation for decisions. */
export interface Installation {
  /** Protocol version that the controller speaks. */
  protocol: number;
  runnerImage: string;
  /** Runner image with Python; undefined where the installation has none. */
  pythonRunnerImage: string | undefined;
  /** Paths of uv and of the program that uses it, in the pod of a build. */
  builder: { uv: string; script: string };
  /** Pods are processes on this machine, as on the embedded cluster, so no runner has to be injected into an image. */
  imagesArePrograms: boolean;
  /** Milliseconds after which an unresponsive node is given up, and a pod that should have ended. */
  nodeGraceMs: number;
}

/** A session's slot: held, available, or waited for. */
export type Slot = 'Held' | 'Available' | Waiting;

/** Reason for the wait for a slot and its details, as shown to users. */
export interface Waiting {
  waiting: Extract<Reason, 'AtCapacity' | 'CapacityUnknown'>;
  message: string;
  /** Position in the queue, from 1. */
  position: number;
  /** A sample of the sessions that hold the slots. */
  holders?: { name: string; since: string }[];
}

/** A failed effect that the next decisions must know. The leader keeps it in memory; its successor learns it again. */
export interface Problem {
  reason: Reason;
  message: string;
  /** Transient: the API server is expected to recover soon. */
  passes?: true;
}

/** The requested deletion of a pod. */
export interface PendingDeletion {
  podUID: string;
  /** A clause that follows the pod's name. */
  why: string;
  /** Problem for which the pod does not start, as Kubernetes reports it: the end of its turn if its program has never run. */
  problem?: Problem;
  accepted?: boolean;
}

/** Reconciles of one session that fail by a programming error, again and again. */
export interface Failing {
  count: number;
  /** Time of the first, monotonic milliseconds. */
  since: number;
}

/** Memory of this leader about one session, beyond what is written. Losing it is harmless. */
export interface SessionMemory {
  /** True once every ended turn is in the caches. */
  knowsTurns: boolean;
  /** Turns that had ended and were not counted yet at the last reconcile. */
  uncounted: readonly CachedTurn[];
  /** Latest creation of a turn of the session, milliseconds since the epoch: the turn may be deleted before that is written. */
  turnCreatedAt?: number | undefined;
  /** The last state that a turn committed, until the session's status has it: the turn may be deleted first. */
  committed?: StateRef | undefined;
  /** Inputs of turns that are written Running and not yet sent, by uid. */
  inputs: ReadonlyMap<string, unknown>;
  /** True once this leader has tried to create the turn in `spec.input`. */
  firstTurnTried?: boolean | undefined;
  /** Problem that keeps the turn in `spec.input` from being created. */
  firstTurnProblem?: Problem | undefined;
  /** Time since which the settings have been invalid, for any reason; milliseconds since the epoch. */
  cannotStartSince?: number | undefined;
  /** Last live read of the ConfigMaps that the cache does not show, milliseconds since the epoch. */
  filesReadAt?: number | undefined;
  /** Uid of a deleted build whose archive a runner of this session should have got. */
  lostEnvironment?: string | undefined;
  /** Bytes of outputs and artifacts that the last turn had stored, or was refused. */
  historyStored?: number | undefined;
  /** Last attempt to make room for the next turn, milliseconds since the epoch. */
  roomMadeAt?: number | undefined;
  /** Last write of `status.queue`, milliseconds since the epoch. */
  queueWrittenAt?: number | undefined;
  /** Time at which a turn was last given to the runner, monotonic milliseconds. */
  gaveAt?: number | undefined;
  /** Id of the request for which Approvals were read live when the time for a decision was over. */
  approvalsReadFor?: string | undefined;
  /** Last write of the session that counted a turn, monotonic milliseconds. */
  countedAt?: number | undefined;
  /** Reconciles in a row that ended because somebody else had written the same object. */
  conflicts: number;
  /** Reconciles in a row that failed by a programming error. */
  failing?: Failing | undefined;
  /** Turns at which they failed, by uid, and how. */
  broken: ReadonlyMap<string, string>;
  incarnation: IncarnationMemory;
}

/**
 * Memory of one incarnation: empty from the write that takes it, replaced by the write that takes the next. Most facts
 * name their pod by its uid; they outlive it, as what it reported counts until the incarnation has been released.
 */
export interface IncarnationMemory {
  /** Pod whose runner cannot get the files or the environment in the status, because they were deleted. */
  contentsLost?: { podUID: string; problem: Problem } | undefined;
  /** The last rejected creation of the pod, or the problem that keeps its runner from being bound. */
  startProblem?: Problem | undefined;
  /** Time since which the creation of the pod has failed, milliseconds since the epoch. */
  createFailingSince?: number | undefined;
  /** The session's pod as last seen, for what it reported before it was gone. */
  lastPod?: StoredPod | undefined;
  /** The pod whose runner is known to have been bound. */
  bound?: { podUID: string };
  /** The pod that was read live when its start timeout had passed. */
  podRead?: { podUID: string };
  /** The runnerless pod whose scheduling gate was removed; the cache may not show it yet. */
  letRun?: { podUID: string };
  /** The runnerless pod whose stdin got the input, or cannot get it. */
  inputGiven?: { podUID: string };
  /** Time of the progress report of a running turn whose write failed; later reports are written. */
  usageUnwritten?: number;
  /** Problem that keeps a result from being stored, and since when. */
  commitProblem?: (Problem & { since: number }) | undefined;
  /** The suspension in progress. */
  suspension?: SuspensionMemory | undefined;
  /** Consecutive failed suspensions: the last problem, their count, and when to retry unless the session changes. */
  suspensionFailed?: { problem: Problem; count: number; againAt: number; generation: number | undefined } | undefined;
  /** The pod whose deletion was requested; until it is accepted the request or its answer may be lost. */
  deletionPending?: PendingDeletion;
  /** The pod that live GETs found gone. */
  confirmedGone?: { podUID: string };
  /** Time of this leader's decision to own the incarnation, monotonic milliseconds. */
  ownedSince?: number;
  /** The pod of a pool that the session cannot have, and why. */
  claimLost?: { podUID: string; why: string };
  /** The ended pod whose log has been read to its end, or cannot be read. */
  logRead?: { podUID: string };
  /** The ended pod whose log could not be read, and since when (monotonic milliseconds). */
  logFailing?: { podUID: string; since: number } | undefined;
}

interface SuspensionMemory {
  /** The pod whose runner was asked to suspend. */
  podUID: string;
  /** Milliseconds since the epoch. */
  askedAt: number;
  /** The session's state, once it is stored and the live check found nothing that speaks against the suspension. */
  verified?: StateRef | 'Unchanged';
}

/** The facts about a node for decisions on its pods. */
export interface NodeFacts {
  /** The node is unschedulable (`kubectl cordon`). */
  cordoned: boolean;
  ready: boolean;
  /** Time since which `ready` has this value, milliseconds since the epoch. */
  since?: number;
}

/** Pods of pools for the next incarnation of a session. */
export interface WarmStart {
  /** Name of the pool. */
  pool: string;
  /** True where the pods of the pool are as the session's own would be. */
  fits: boolean;
  /** Pods that the session can claim: the ready ones and then those that start, the oldest first. */
  pods: readonly StoredPod[];
  /** Names of those that start. */
  starting: ReadonlySet<string>;
}

/** The input of every decision about one Session. */
export interface World {
  /** Milliseconds since the epoch. */
  now: number;
  /** Milliseconds of the monotonic clock, at the same moment. */
  monotonic: number;
  /** Jumps of the clock of `now`. */
  clockJumps: readonly ClockJump[];
  session: CachedSession;
  /** Cached Turns that name the session, unordered: its own, ownerless ones, and those of a former session. */
  turns: CachedTurn[];
  /** Cached Approvals that name one of these turns. */
  approvals: CachedApproval[];
  class: StoredSessionClass | undefined;
  /**
   * Digests of the ConfigMaps with files of the session's agent, by name; those that are not there are left out.
   * It is undefined where ConfigMaps have not been read, or may not be.
   */
  agentFiles: ReadonlyMap<string, string> | undefined;
  /** The Environment that the session names; undefined: it names none, or Environments have not been read. */
  environment: StoredEnvironment | 'Missing' | undefined;
  /** Labels of the session's namespace, as far as known. */
  namespaceLabels?: Readonly<Record<string, string>>;
  /** The pod that status.podName names. */
  pod: StoredPod | undefined;
  /** The pod of a pool that status.podName names, while no session has claimed it. */
  unclaimed?: StoredPod;
  /** Pools of the session's class in its namespace; absent: there is none, or the session has a pod. */
  warm?: WarmStart;
  /** Pods of earlier incarnations of the session that are not gone yet. */
  otherPods: StoredPod[];
  link: LinkView | undefined;
  memory: SessionMemory;
  /** The session as it waits, or would wait, in the queue for a slot. */
  applicant: Applicant;
  slot: Slot;
  /** Admission of the session's next turn by its concurrency group. */
  group: GroupView;
  /** Start of that turn's wait, milliseconds since the epoch. */
  groupSince: number;
  /** The namespace has no room in the store for what the session stored last time. */
  shortOfRoom?: Shortage;
  /** The session is to be preempted for this one, named as users read it. */
  preemptFor?: { for: string };
  /** The pod's node, if known. */
  node?: NodeFacts;
  /** Nodes of this and the other pods, by the pod's uid, as far as known. */
  nodes?: ReadonlyMap<string, NodeFacts>;
  installation: Installation;
  /** `Leader.isReady`. */
  leaderIsReady: boolean;
}
