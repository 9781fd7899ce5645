import type { Protection } from '../../core/resources/sandbox.ts';
import { startedContainer } from '../observed/pod-status.ts';
import { isRunnerlessPod } from '../settings/runnerless.ts';
import { hasProtection } from '../status/protection.ts';
import type { Draft } from './draft.ts';

/** Readiness of the session's pod: whether it can be given turns. */

export function isReady(draft: Draft): boolean {
  const { link, pod } = draft.world;
  if (!pod || draft.released || pod.metadata.deletionTimestamp) return false;
  if (draft.world.memory.incarnation.deletionPending?.podUID === pod.metadata.uid) return false;
  if (link?.phase === 'Bound') return requiredProtections(draft).every((type) => hasProtection(draft.world, type));
  if (isRunnerlessPod(pod)) return startedContainer(pod);
  // Reopening a link to a pod that was ready does not make the pod unready.
  return wasReady(draft) && link?.phase !== 'Foreign';
}

/** Reports whether the status says that the present pod has become ready. */
function wasReady({ world: { session, pod } }: Draft): boolean {
  const { conditions, podUID } = session.status ?? {};
  return podUID === pod?.metadata.uid && conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
}

/** Protections that the present pod must have to be ready: a pod that was ready stays so when its class is edited. */
export function requiredProtections(draft: Draft): readonly Protection[] {
  return wasReady(draft) ? [] : (draft.world.class?.spec.sandbox?.require ?? []);
}
