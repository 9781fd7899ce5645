import type { StoredPod } from '../../../core/kube/builtin.ts';
import { givenUpAt } from '../../world/pod-status.ts';
import type { NodeFacts } from '../../world/world.ts';
import type { Draft, Policy } from '../draft.ts';
import { wake } from '../draft.ts';

/**
 * Pods that their node does not answer for are given up after a grace: first deleted, as everybody's pods are, and when
 * that has no effect either, removed. Until then they count, and nothing runs in their place: docs/decisions/failures.md.
 */
export const deadNode: Policy = (draft) => {
  const { pod, strays, nodes } = draft.world;
  for (const stray of strays) giveUp(draft, stray, nodes?.get(stray.metadata.uid));
  if (!pod) return undefined;
  if (giveUp(draft, pod, nodes?.get(pod.metadata.uid))) return 'Stop';
  tellOfStuck(draft, pod);
  return undefined;
};

/** Its node, which may be well, is slow to end it: that is for people to look into. */
function tellOfStuck(draft: Draft, { metadata, spec }: StoredPod): void {
  const { now, installation } = draft.world;
  if (!metadata.deletionTimestamp) return;
  const late = Date.parse(metadata.deletionTimestamp) + installation.nodeGraceMs;
  if (now < late) {
    wake(draft, late);
    return;
  }
  const node = spec.nodeName ? `node ${spec.nodeName}` : 'its node';
  const message = `Pod ${metadata.name} should have ended at ${metadata.deletionTimestamp}, and ${node} has not confirmed that it has; its place stays taken until then. See whether the node is well; if it is gone for good, delete the Node, or the pod with --force.`;
  draft.problems.Deletion = { reason: 'PodStuck', message };
}

/** Whether the pod is given up in this pass. */
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
