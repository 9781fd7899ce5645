import { ApiError, isConflict } from '../../core/kube/errors.ts';
import { networkPolicyName } from '../../core/resources/names.ts';
import { NetworkPolicyTaken } from '../network/policies.ts';
import { learn } from '../observed/memory.ts';
import type { ReconcileContext } from './context.ts';
import { refusal } from './refusal.ts';

/**
 * Applies the network policy before the pod exists. Rejects where that fails, and puts the problem into the session's
 * memory where a person must act.
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
