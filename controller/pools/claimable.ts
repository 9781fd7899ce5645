import { understand } from '../../core/frames/messages.ts';
import type { StoredPod } from '../../core/kube/builtin.ts';
import { LABEL_TEMPLATE } from '../../core/resources/names.ts';
import type { LinkView } from '../observed/link-view.ts';
import { isOver, podProblem } from '../observed/pod-status.ts';
import type { NodeFacts } from '../observed/world.ts';
import type { PoolPod } from './pool-world.ts';

/** Pods of pools that a session can claim. */

/** Age from which a pod is not claimed: its Secrets may have been rotated since its start. */
const MAX_AGE_MS = 60 * 60_000;
/** Age from which a pod that has not started yet is not claimed: the session's own might start elsewhere sooner. */
const STARTING_MS = 10_000;

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
 * Reports whether a session that needs pods of this hash can claim the pod at once: its runner has answered, is not bound and
 * owes no answer, and its node takes pods.
 */
export function isClaimable(facts: ClaimableFacts, hash: string): boolean {
  const { link, protocol } = facts;
  return isSound(facts, hash, MAX_AGE_MS) && hasAnswered(link) && understand(link?.protocol ?? 0, protocol);
}

/** Reports whether the pod is such a one and still starts, without a problem that is known: it is ready before a new pod would be. */
export function isStarting(facts: ClaimableFacts, hash: string): boolean {
  const { pod, link } = facts;
  return isSound(facts, hash, STARTING_MS) && link?.phase === 'Opening' && podProblem(pod) === undefined;
}

function isSound({ pod, node, now }: ClaimableFacts, hash: string, maxAgeMs: number): boolean {
  const { labels, creationTimestamp, deletionTimestamp } = pod.metadata;
  if (deletionTimestamp || isOver(pod) || labels?.[LABEL_TEMPLATE] !== hash) return false;
  if (now - Date.parse(creationTimestamp) >= maxAgeMs) return false;
  return !node || (!node.cordoned && node.ready);
}

/** Reports whether this leader has never heard from the pod's runner. A runner that has answered once has started, even if it is silent now. */
export function isUnheardOf(link: LinkView | undefined): boolean {
  return link === undefined || link.phase === 'Opening';
}

/** Reports whether the runner of an unclaimed pod waits for a session, as far as is known. */
function hasAnswered(link: LinkView | undefined): boolean {
  if (link?.phase !== 'Unbound' || link.queued) return false;
  return link.silentSince === undefined && link.unreachableMs === undefined;
}

/** Pods that no session has taken, as `uid ready` or `uid starting`: a pod can be claimed while it starts, and again once it has answered. */
export function claimableNow(pods: readonly PoolPod[]): ReadonlySet<string> {
  const untaken = pods.filter(({ taken }) => !taken);
  return new Set(untaken.map(({ pod, link }) => `${pod.metadata.uid} ${hasAnswered(link) ? 'ready' : 'starting'}`));
}
