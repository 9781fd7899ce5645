import { reasons } from '../../../core/resources/reasons.ts';
import { isProblem } from '../../settings/effective.ts';
import { hasProtection, LACKS } from '../../status/protection.ts';
import { type Policy, wake } from '../draft.ts';
import { requiredProtections } from '../readiness.ts';
import { failLive, freeIndex } from './starting.ts';

/** Protections that the class requires of a pod before its first turn. */

/** Interval between repeats of `bind` to a runner whose report is missing. */
const ASK_AGAIN_MS = 5_000;

/** Gives up a pod whose runner reports less than the class requires; the turns that wait for it fail. */
export const unprotected: Policy = (draft) => {
  const { pod, session, installation } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp) return undefined;
  const lacks = requiredProtections(draft).find((type) => hasProtection(draft.world, type) === false);
  if (!lacks) return undefined;
  const reason = LACKS[lacks];
  const why = installation.imagesArePrograms ? reasons.EmbeddedCluster : reasons[reason];
  const message = `${why} Class "${session.spec.class}" requires ${lacks} (spec.sandbox.require).`;
  draft.problems.Pod = { reason, message };
  const index = freeIndex(draft);
  if (index === undefined) return 'Stop';
  failLive(draft, index, { reason, message });
  draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: `it lacks ${lacks}, which its class requires` });
  return 'Stop';
};

/**
 * Waits for the report of a runner whose class requires protections. A leader that takes over may find the report lost
 * with frames that the runner no longer holds; the runner answers the exact repeat of its `bind` with it.
 */
export const awaitReport: Policy = (draft) => {
  const { pod, link, now, leaderIsReady } = draft.world;
  if (!pod || !requiredProtections(draft).some((type) => hasProtection(draft.world, type) === undefined))
    return undefined;
  if (link?.phase !== 'Bound' || !leaderIsReady || isProblem(draft.settings)) return 'Stop';
  const again = (link.bindSentAt ?? Number.NEGATIVE_INFINITY) + ASK_AGAIN_MS;
  if (now < again) wake(draft, again);
  else draft.actions.push({ do: 'Bind', settings: draft.settings });
  return 'Stop';
};
