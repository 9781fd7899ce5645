import { ApiError, isConflict } from '../../core/kube/errors.ts';
import { networkPolicyName } from '../../core/resources/names.ts';
import { NetworkPolicyTaken } from '../network/policies.ts';
import { learn } from '../world/learn.ts';
import type { ReconcileContext } from './context.ts';
import { refusal } from './refusal.ts';

/**
 * What a pod may reach is said before it is there. Rejects when that cannot be, with the reason in the session's memory
 * where a person must know it.
 */
export async function ensureNetworkPolicy({ effects, world, memory, signal }: ReconcileContext): Promise<void> {
  const { metadata, spec } = world.session;
  try {
    await effects.networkPolicies.ensure(metadata.namespace, spec.class, signal);
  } catch (error) {
    if (error instanceof NetworkPolicyTaken) {
      learn(memory, { fact: 'StartProblem', problem: { reason: 'PodForbidden', message: error.message } });
    } else if (error instanceof ApiError && !isConflict(error)) {
      const problem = refusal(error, `NetworkPolicy ${networkPolicyName(spec.class)}`);
      learn(memory, { fact: 'StartProblem', problem });
    }
    throw error;
  }
}
