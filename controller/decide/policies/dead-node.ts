import type { StoredPod } from '../../../core/kube/builtin.ts';
import { givenUpAt } from '../../observed/pod-status.ts';
import type { NodeFacts } from '../../observed/world.ts';
import type { Draft, Policy } from '../draft.ts';
import { wake } from '../draft.ts';

/**
 * Gives up pods on an unresponsive node after a grace period: first deletes them, and when that has no effect, deletes
 * them by force. Until then they count, and no pod replaces them: docs/decisions/failures.md.
 */
export const deadNode: Policy = (draft) => {
  const { pod, otherPods, nodes } = draft.world;
  for (const other of otherPods) giveUp(draft, other, nodes?.get(other.metadata.uid));
  if (!pod) return undefined;
  if (giveUp(draft, pod, nodes?.get(pod.metadata.uid))) return 'Stop';
  reportStuck(draft, pod);
  return undefined;
};

/** Reports a pod that its node, perhaps healthy, is slow to end; administrators have to check it. */
function reportStuck(draft: Draft, { metadata, spec }: StoredPod): void {
  const { now, installation } = draft.world;
  if (!metadata.deletionTimestamp) return;
  const late = Date.parse(metadata.deletionTimestamp) + installation.nodeGraceMs;
  if (now < late) {
    wake(draft, late);
    return;
  }
  const node = spec.nodeName ? `node ${spec.nodeName}` : 'its node';
  const message = `Pod ${metadata.name} should have ended at ${metadata.deletionTimestamp}, and ${node} has not confirmed that it has; its slot stays taken until then. See whether the node is well; if it is gone for good, delete the Node, or the pod with --force.`;
  draft.problems.Deletion = { reason: 'PodStuck', message };
}

/** Gives up the pod if its time has come; returns whether it did. */
function giveUp(draft: Draft, pod: StoredPod, node: NodeFacts | undefined): boolean {
  const { now, installation } = draft.world;
  const deadline = givenUpAt(pod, node, installation.nodeGraceMs);
  if (deadline === undefined) return false;
  if (now < deadline) {
    wake(draft, deadline);
    return false;
  }
  const why = 'its node does not answer';
  draft.actions.push({ do: 'DeletePod', pod, why, ...(pod.metadata.deletionTimestamp ? { force: true } : {}) });
  return true;
}
