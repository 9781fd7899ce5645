/** Decisions on the request of a turn. */
import type { KubeApi } from '../../core/kube/types.ts';
import type { ApprovalSpec } from '../../core/resources/approval.ts';
import { decisionCounts } from '../../core/resources/decided.ts';
import { approvals, type StoredApproval, type StoredTurn } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';

export interface Decided {
  spec: ApprovalSpec;
  /** RFC 3339. */
  at: string;
  /** Absent where the Approval was deleted after the turn had taken it. */
  object?: StoredApproval;
}

/** Resolves with the first decision on a request of the turn; undefined while nobody has decided. */
export async function decisionOn(
  api: Pick<KubeApi, 'list'>,
  { metadata: { namespace, name, uid }, status }: StoredTurn,
  requestId: string,
  signal: AbortSignal,
): Promise<Decided | undefined> {
  const fieldSelector = `spec.turn=${name}`;
  const { items } = await api.list(approvals, { namespace, fieldSelector, signal });
  const [object] = items
    .filter(({ spec, metadata }) => spec.requestId === requestId && isFor(uid, metadata))
    .filter(({ spec }) => decisionCounts(spec.requester, status ?? {}))
    .sort(
      ({ metadata: a }, { metadata: b }) =>
        Date.parse(a.creationTimestamp) - Date.parse(b.creationTimestamp) || (a.name < b.name ? -1 : 1),
    );
  if (object) return { spec: object.spec, at: object.metadata.creationTimestamp, object };
  const { id, decided } = status?.approval ?? {};
  if (id !== requestId || !decided) return undefined;
  const { decision, response, note, by, at } = decided;
  return { spec: { turn: name, requestId, decision, response, note, requester: by }, at };
}

/**
 * Reports whether the Approval is for the turn with this UID. One of kubectl has no owner until the controller has seen it. One that was
 * changed, or is being deleted, counts for nothing.
 */
function isFor(
  uid: string,
  { ownerReferences, generation = 1, deletionTimestamp }: StoredApproval['metadata'],
): boolean {
  const owner = ownerReferences?.find(({ kind }) => kind === 'Turn');
  return (owner === undefined || owner.uid === uid) && generation === 1 && deletionTimestamp === undefined;
}

/**
 * Reports whether a wait for the turn is over: it has ended, or asks what nobody has decided. `known`: id of a request that the
 * caller knows of, for which the wait goes on.
 */
export async function isSettled(
  api: Pick<KubeApi, 'list'>,
  turn: StoredTurn,
  { known, signal }: { known?: string | undefined; signal: AbortSignal },
): Promise<boolean> {
  const { phase, approval } = turn.status ?? {};
  if (isTerminal(phase)) return true;
  if (phase !== 'AwaitingApproval' || !approval || approval.decided || approval.id === known) return false;
  return (await decisionOn(api, turn, approval.id, signal)) === undefined;
}
