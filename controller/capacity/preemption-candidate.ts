import { parseDuration } from '../../core/resources/duration.ts';
import type { Caches } from '../caches/caches.ts';
import { JUST_ACTIVE_MS } from '../observed/activity.ts';
import { cannotUseSlot, ownTurns } from '../observed/own-turns.ts';
import type { CachedSession } from '../observed/world.ts';
import { keepsState } from '../settings/persistence.ts';
import type { PreemptionCandidate } from './preemption.ts';

const DEFAULT_APPROVAL_WINDOW = '1h';

/**
 * The session as a preemption candidate: its pod answers, it has nothing to do or cannot do it, and its state is stored.
 * It is undefined for a session that works, waits for something other than an approval or its group, or is ending anyway.
 */
export function preemptionCandidateOf(
  session: CachedSession,
  caches: Pick<Caches, 'pod' | 'class' | 'turnsNaming'>,
  now: number,
): PreemptionCandidate | undefined {
  const { metadata, spec, status } = session;
  const { namespace, name } = metadata;
  if (!status?.podName || metadata.deletionTimestamp || status.phase === 'Finished') return undefined;
  const pod = caches.pod(namespace, status.podName);
  if (!pod || pod.metadata.deletionTimestamp) return undefined;
  const sessionClass = caches.class(spec.class);
  if (!keepsState(spec, sessionClass)) return undefined;
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'True' && status.phase !== 'Suspending') return undefined;

  const candidate = { key: `${namespace}/${name}`, namespace, class: spec.class };
  const { live, uncounted } = ownTurns(session, caches.turnsNaming(namespace, name));
  const [turn, ...more] = live;
  if (!turn) {
    const moments = [
      status.lastActiveAt ?? metadata.creationTimestamp,
      ...uncounted.map((ended) => ended.status.finishedAt),
    ];
    const since = Math.max(...moments.filter((moment) => moment !== undefined).map((moment) => Date.parse(moment)));
    return { ...candidate, rests: 'Idle', since, spared: now - since < JUST_ACTIVE_MS };
  }
  if (cannotUseSlot(turn)) {
    const shown = turn.status.conditions?.find(({ type }) => type === 'Finished')?.lastTransitionTime;
    const since = Date.parse(shown ?? turn.metadata.creationTimestamp);
    return { ...candidate, rests: 'Waiting', since, spared: now - since < JUST_ACTIVE_MS };
  }
  const asked = turn.status.phase === 'AwaitingApproval' ? turn.status.approval?.since : undefined;
  if (asked === undefined || turn.status.approval?.decided || more.length > 0) return undefined;
  const since = Date.parse(asked);
  const window = parseDuration(sessionClass?.spec.approvalWindow ?? DEFAULT_APPROVAL_WINDOW);
  return now - since < window ? undefined : { ...candidate, rests: 'AwaitingApproval', since };
}
