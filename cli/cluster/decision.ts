import { defined } from '../../core/defined.ts';
import { ApiError, isAlreadyExists, isForbidden, isNotFound } from '../../core/kube/errors.ts';
import { decidedText, decisionCounts, isSameDecision, selfApprovalText } from '../../core/resources/decided.ts';
import {
  type Approval,
  approvals,
  ownedByTurn,
  type StoredApproval,
  type StoredTurn,
} from '../../core/resources/kinds.ts';
import { API_GROUP_VERSION, approvalName } from '../../core/resources/names.ts';
import { refused } from '../errors.ts';
import { isAllowed } from './access.ts';
import type { Decision } from './backend.ts';
import type { Cluster, KubeCluster } from './cluster.ts';

/** Decides on a turn's request, as the caller; rejects when somebody has decided already. */
export async function sendDecision(
  turn: StoredTurn,
  requestId: string,
  given: Decision,
  cluster: Cluster,
  signal: AbortSignal,
): Promise<void> {
  try {
    await cluster.decide(turn, requestId, given, signal);
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'AlreadyDecided') throw refused(error.message);
    if (!isAlreadyExists(error)) throw error;
    throw refused(`somebody has decided on request ${requestId} of turn ${turn.metadata.name} already`);
  }
}

/** Creates the Approval of a decision. */
export async function createApproval(
  turn: StoredTurn,
  requestId: string,
  given: Decision,
  { api, namespace, author }: KubeCluster,
  signal: AbortSignal,
): Promise<void> {
  const { decision, response, note } = given;
  const { name } = turn.metadata;
  const by = await author();
  if (!decisionCounts(by.requester, turn.status ?? {})) throw refused(selfApprovalText(by.requester, name));
  const object: Approval = {
    apiVersion: API_GROUP_VERSION,
    kind: 'Approval',
    metadata: { namespace, name: approvalName(requestId), ownerReferences: [ownedByTurn(turn)] },
    spec: {
      turn: name,
      requestId,
      decision,
      ...defined({ response, note }),
      ...by,
    },
  };
  try {
    await api.create(approvals, object, { signal });
  } catch (error) {
    const first = isAlreadyExists(error) && (await readIfAllowed(object));
    if (!first) throw error;
    if (isSameDecision(first.spec, object.spec)) return;
    throw refused(decidedText(first.spec, first.metadata.creationTimestamp));
  }

  /** Reads the first decision; undefined where the caller, who may decide, may not read. */
  async function readIfAllowed({ metadata: { name } }: Approval): Promise<StoredApproval | undefined> {
    try {
      return await api.get(approvals, { namespace, name }, { signal });
    } catch (error) {
      if (isForbidden(error) || isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/** Reports whether the caller may decide on requests of the namespace. */
export function mayDecide({ api, namespace }: KubeCluster, signal: AbortSignal): Promise<boolean> {
  const { group, plural: resource } = approvals;
  return isAllowed(api, { namespace, verb: 'create', group, resource }, signal);
}
