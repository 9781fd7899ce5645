import type { StoredPod } from '../../core/kube/builtin.ts';
import type { ServerMeta } from '../../core/kube/types.ts';
import type { ApprovalSpec } from '../../core/resources/approval.ts';
import type { StoredSession, StoredSessionClass } from '../../core/resources/kinds.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import type { TurnSpec, TurnStatus } from '../../core/resources/turn.ts';
import type { Applicant, GroupView } from './capacity-view.ts';
import type { LinkView } from './link-view.ts';

/** What a body was when it left the cache: enough to tell whether it is still the same, and too large. */
export interface BodyFacts {
  /** sha256 of the JSON, hex. */
  digest: string;
  bytes: number;
  /** Where it is nested too deep. Its digest and bytes are not known then. */
  tooDeep?: string;
}

/** A Session without the body of its input. */
export type CachedSession = Omit<StoredSession, 'spec'> & {
  spec: Omit<StoredSession['spec'], 'input'> & { input?: BodyFacts };
};

/** A Turn without its bodies. */
export interface CachedTurn {
  metadata: Pick<
    ServerMeta,
    'name' | 'namespace' | 'uid' | 'resourceVersion' | 'creationTimestamp' | 'deletionTimestamp' | 'ownerReferences'
  >;
  spec: Pick<TurnSpec, 'session' | 'timeout' | 'retry' | 'cancel'>;
  status: TurnStatus;
  input: BodyFacts;
  /** Why the turn cannot be worked on, by an error of the controller's own; it has only what its end needs. */
  unreadable?: string;
}

/** An Approval without the body of its response. */
export interface CachedApproval {
  metadata: Pick<
    ServerMeta,
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
  /** Where the response is nested too deep; `responseBytes` is not known then. */
  responseTooDeep?: string;
}

/** The installation's own settings that decisions depend on. */
export interface Installation {
  runnerImage: string;
  /** Pods are processes of the machine, as on the embedded cluster: into an image nothing needs to be brought. */
  imagesArePrograms: boolean;
  /** Milliseconds that a pod may take to answer before it counts as unresponsive. */
  unresponsiveMs: number;
  /** Milliseconds after which a node that does not answer is given up, and so is a pod that should have ended by then. */
  nodeGraceMs: number;
}

/** Whether a place for a running session is to be had. */
export type Slot = 'Held' | 'Available' | Waiting;

/** Why there is none, and what is shown of the wait. */
export interface Waiting {
  waiting: Extract<Reason, 'AtCapacity' | 'CapacityUnknown'>;
  message: string;
  /** From 1. */
  position: number;
  /** Some of those who hold the places waited for. */
  holders?: { name: string; since: string }[];
}

/** A failure of an effect that the next decisions must know, kept by the leader in memory and learnt anew by its successor. */
export interface Problem {
  reason: Reason;
  message: string;
  /** The API server is expected to take it back by itself, soon. */
  passes?: true;
}

/** What this leader remembers of one session beyond what is written. Lost without harm. */
export interface Memory {
  /** No turn that has ended is unknown to the caches. */
  knowsTurns?: boolean;
  /** Turns that had ended and were not counted yet at the last look. */
  uncounted?: readonly CachedTurn[];
  /** The last state that a turn has committed, until the session's status has it: the turn may be deleted before. */
  committed?: StateRef | undefined;
  /** The last refusal of the pod's creation. */
  startProblem?: Problem | undefined;
  /** Why the turn in `spec.input` could not be created. */
  firstTurnProblem?: Problem | undefined;
  /** Since when the settings cannot work, whatever is wrong with them; milliseconds since the epoch. */
  unsettledSince?: number | undefined;
  /** A result that could not be stored, since when and why. */
  commitProblem?: (Problem & { since: number }) | undefined;
  /** Live GETs found that this pod is gone. */
  confirmedGone?: { podUID: string } | undefined;
  /** This pod was read live when its time to start was over. */
  podRead?: { podUID: string } | undefined;
  /** The log of this ended pod has been read to its end, or cannot be. */
  logRead?: { podUID: string } | undefined;
  /** Since when (monotonic milliseconds) the log of this ended pod could not be read. */
  logFailing?: { podUID: string; since: number } | undefined;
  /** The session's pod as it was last seen, for what it said before it went. */
  lastPod?: StoredPod | undefined;
  /** Since when the creation of the pod has failed, milliseconds since the epoch. */
  createFailingSince?: number | undefined;
  /** Suspensions that failed one after the other, why the last did, and when to try again unless the session changes. */
  suspensionFailed?: { problem: Problem; count: number; againAt: number; generation: number | undefined } | undefined;
  /** The pod that was asked to be ready for suspension, and when (milliseconds since the epoch). */
  suspensionAsked?: { podUID: string; at: number } | undefined;
  /** When `status.queue` was last written, milliseconds since the epoch. */
  queueWrittenAt?: number | undefined;
  /** The deletion of this pod was asked for; until it is accepted the request or its answer may be lost. */
  deletionPending?: { podUID: string; why: string; accepted?: boolean } | undefined;
  /** This pod without a runner was let run, whatever the cache shows. */
  letRun?: { podUID: string } | undefined;
  /** The input was written to the stdin of this pod without a runner, or cannot be. */
  inputGiven?: { podUID: string } | undefined;
  /** The figures of a running turn that could not be written, by when they were so: later ones are. */
  usageUnwritten?: number;
  /** The suspension under way: the state handed over is stored, and the second look found nothing. */
  suspension?: { podUID: string; verified: StateRef | 'Unchanged' } | undefined;
}

/** What a pod's fate depends on of its node. */
export interface NodeFacts {
  /** Nothing new is to be put there. */
  cordoned: boolean;
  ready: boolean;
  /** Since when it has been ready, or not, milliseconds since the epoch. */
  since?: number;
}

/** Everything a decision about one Session depends on. */
export interface World {
  /** Milliseconds since the epoch. */
  now: number;
  session: CachedSession;
  /** Every cached Turn that names the session, in no order: its own, ownerless ones, and those of a former session. */
  turns: CachedTurn[];
  /** Every cached Approval that names one of them. */
  approvals: CachedApproval[];
  class: StoredSessionClass | undefined;
  /** Of the session's namespace, as far as they are known. */
  namespaceLabels?: Readonly<Record<string, string>>;
  /** The pod that status.podName names. */
  pod: StoredPod | undefined;
  /** Other pods of the session: earlier incarnations that are not gone yet. */
  strays: StoredPod[];
  link: LinkView | undefined;
  memory: Memory;
  /** The session as it stands or would stand in line for a place. */
  applicant: Applicant;
  slot: Slot;
  /** Whether its next turn may begin as far as its concurrency group is concerned. */
  group: GroupView;
  /** Since when that turn has waited, milliseconds since the epoch. */
  groupSince: number;
  /** The session is to give its place to another one, named as people read it. */
  preemptFor?: { for: string };
  /** The pod's node, as far as it is known. */
  node?: NodeFacts;
  /** The nodes of this and the other pods, by the pod's uid, as far as they are known. */
  nodes?: ReadonlyMap<string, NodeFacts>;
  installation: Installation;
  /** `Leader.hasSettled`. */
  settled: boolean;
}
