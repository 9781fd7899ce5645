import { understand } from '../../core/frames/messages.ts';
import type { StoredPod } from '../../core/kube/builtin.ts';
import { LABEL_TEMPLATE } from '../../core/resources/names.ts';
import type { LinkView } from '../world/link-view.ts';
import { isOver } from '../world/pod-status.ts';
import type { NodeFacts } from '../world/world.ts';

/** Pods of pools that a session can claim. */

/** Age from which a pod is not claimed: its Secrets may have been rotated since its start. */
const MAX_AGE_MS = 60 * 60_000;

export interface ClaimableFacts {
  pod: StoredPod;
  link: LinkView | undefined;
  node: NodeFacts | undefined;
  /** Milliseconds since the epoch. */
  now: number;
  /** Protocol version that the controller speaks. */
  protocol: number;
}

/**
 * Reports whether a session that needs pods of this hash can claim the pod: its runner has answered, is not bound and owes no
 * answer, and its node takes pods.
 */
export function isClaimable({ pod, link, node, now, protocol }: ClaimableFacts, hash: string): boolean {
  const { labels, creationTimestamp, deletionTimestamp } = pod.metadata;
  if (deletionTimestamp || isOver(pod) || labels?.[LABEL_TEMPLATE] !== hash) return false;
  if (now - Date.parse(creationTimestamp) >= MAX_AGE_MS) return false;
  if (node && (node.cordoned || !node.ready)) return false;
  return hasAnswered(link) && understand(link?.protocol ?? 0, protocol);
}

/** Reports whether the runner of an unclaimed pod waits for a session, as far as is known. */
export function hasAnswered(link: LinkView | undefined): boolean {
  return link?.phase === 'Unbound' && link.silentSince === undefined && link.unreachableMs === undefined;
}
