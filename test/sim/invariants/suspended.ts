import type { StoredPod } from '../../../core/kube/builtin.ts';
import { pods } from '../../../core/kube/resources.ts';
import { parseDuration } from '../../../core/resources/duration.ts';
import type { StoredSession } from '../../../core/resources/kinds.ts';
import { LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import type { ControllerCall } from '../observer.ts';
import { CLOCK_MS } from './clocks.ts';
import type { Facts } from './facts.ts';

/** Reasons for which a pod goes whatever its session is about to do: its state was not taken, or nobody can reach it. */
const OTHER_REASONS: ReadonlySet<string> = new Set(['its state was not stored', 'it could not be attached']);

/**
 * Returns the session that the call suspends, with the living pod that it deletes; undefined when the call suspends
 * none. A session that is Suspending when its lifetime is over ends instead.
 */
export function suspendedBy(
  { verb, resource, namespace, name, process }: ControllerCall,
  facts: Facts,
): { session: StoredSession; pod: StoredPod } | undefined {
  if (verb !== 'delete' || resource !== 'pods') return undefined;
  const pod = facts.server.get(pods, namespace, name);
  const found = facts.session(pod?.metadata.labels?.[LABEL_SESSION_UID] ?? '');
  if (!pod || pod.metadata.deletionTimestamp || found?.status?.phase !== 'Suspending') return undefined;
  if (OTHER_REASONS.has(facts.whyGivenUp(process, pod.metadata.uid) ?? '')) return undefined;
  const { lifetime } = found.spec.timeouts ?? {};
  const age = facts.server.clock.now() - Date.parse(found.metadata.creationTimestamp);
  if (lifetime && age + CLOCK_MS >= parseDuration(lifetime)) return undefined;
  return facts.kubelets.isAlive(pod.metadata.uid) ? { session: found, pod } : undefined;
}
