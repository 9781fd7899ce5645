import { Informer } from '../../core/kube/informer.ts';
import { type Approval, approvals } from '../../core/resources/kinds.ts';
import type { CachedApproval } from '../observed/world.ts';
import { slimApproval } from './slim.ts';
import type { RequiredTools } from './tools.ts';
import type { TurnCache } from './turns.ts';

export interface ApprovalLister {
  allApprovals(): CachedApproval[];
  /** Cached Approvals that name the turn. */
  approvalsNaming(namespace: string, turn: string): CachedApproval[];
}

const OF_TURN = 'ofTurn';

/** The cache of Approvals. A change is passed to the session of the named turn. */
export function approvalCache(tools: RequiredTools, turns: TurnCache) {
  const informer = new Informer<Approval, CachedApproval>({
    ...tools,
    resource: approvals,
    transform: slimApproval,
    unreadable: ({ metadata, spec: { response: _, ...spec } }) => ({ metadata, spec, responseBytes: 0 }),
    indexes: { [OF_TURN]: (approval) => [`${approval.metadata.namespace}/${approval.spec.turn}`] },
  });
  const onApproval = ({ metadata, spec }: CachedApproval) => {
    const turn = turns.informer.get(metadata.namespace, spec.turn);
    if (turn) turns.onTurn(turn);
  };
  informer.addHandler({ add: onApproval, update: onApproval, delete: onApproval });
  const lister: ApprovalLister = {
    allApprovals: () => informer.list(),
    approvalsNaming: (namespace, turn) => informer.byIndex(OF_TURN, `${namespace}/${turn}`),
  };
  return { informer, lister };
}
