/** The parts of sessions and turns that stand in a stream of events. */
import { type ShownArtifact, shownArtifact } from '../artifacts/shown.ts';
import { defined } from '../defined.ts';
import type { CachedObject } from '../kube/cache.ts';
import type { StoredSession, StoredTurn } from '../resources/kinds.ts';
import type { SessionStatus } from '../resources/session.ts';
import type { TurnStatus } from '../resources/turn.ts';
import { isTerminal } from '../resources/turn-phases.ts';

type Metadata = CachedObject['metadata'];

export interface SessionView {
  metadata: Metadata;
  phase: NonNullable<SessionStatus['phase']>;
  reason?: string | undefined;
  message?: string | undefined;
  incarnation?: number | undefined;
  podName?: string | undefined;
  queue?: { position?: number | undefined; since: string } | undefined;
}

export interface TurnView {
  metadata: Metadata;
  session: string;
  phase: NonNullable<TurnStatus['phase']>;
  reason?: string | undefined;
  message?: string | undefined;
  /** Time since when the agent has the turn, RFC 3339, to the second; absent unless it runs. */
  givenAt?: string | undefined;
  status: Pick<
    TurnStatus,
    | 'index'
    | 'attempt'
    | 'incarnation'
    | 'startedAt'
    | 'finishedAt'
    | 'error'
    | 'exitCode'
    | 'outputBytes'
    | 'approval'
    | 'usage'
    | 'artifactsLeftOut'
  > & { artifacts?: ShownArtifact[] | undefined };
}

const metadataOf = ({ metadata: { namespace, name, uid, resourceVersion } }: { metadata: Metadata }): Metadata => ({
  ...defined({ namespace }),
  name,
  uid,
  resourceVersion,
});

export function viewSession({ metadata, status = {} }: StoredSession): SessionView {
  const { phase = 'Queued', conditions, incarnation, podName, queue } = status;
  const ready = conditions?.find(({ type }) => type === 'Ready');
  return {
    metadata: metadataOf({ metadata }),
    phase,
    ...(ready && ready.status !== 'True' ? { reason: ready.reason, message: ready.message } : {}),
    incarnation,
    podName,
    queue: queue && { position: queue.position, since: queue.since },
  };
}

export function viewTurn({ metadata, spec, status = {} }: StoredTurn): TurnView {
  const { phase = 'Queued', conditions } = status;
  const running = conditions?.find(({ type }) => type === 'Running');
  const { index, attempt, incarnation, startedAt, finishedAt, error, exitCode, outputBytes, approval, usage } = status;
  const { artifacts, artifactsLeftOut } = status;
  return {
    metadata: metadataOf({ metadata }),
    session: spec.session,
    phase,
    ...(running && running.status !== 'True' && !isTerminal(phase)
      ? { reason: running.reason, message: running.message }
      : {}),
    ...(running?.status === 'True' && { givenAt: running.lastTransitionTime }),
    status: {
      index,
      attempt,
      incarnation,
      startedAt,
      finishedAt,
      error,
      exitCode,
      outputBytes,
      usage,
      approval: approval && viewApproval(approval, phase),
      artifacts: artifacts?.map(shownArtifact),
      artifactsLeftOut,
    },
  };
}

type Approval = NonNullable<TurnStatus['approval']>;

/** Returns the question with its payload, which may be large, while it waits; then the decision without its response. */
function viewApproval(approval: Approval, phase: TurnView['phase']): Approval {
  const { decided } = approval;
  if (!decided) return phase === 'AwaitingApproval' ? approval : withoutPayload(approval);
  const { response: _response, ...decision } = decided;
  return { ...withoutPayload(approval), decided: decision };
}

export function withoutPayload({ payload: _payload, ...approval }: Approval): Approval {
  return approval;
}
