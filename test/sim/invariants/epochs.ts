import { type Facts, LEASES } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * The epoch of a leader follows from the time and from the epochs of leaders before it, never from what a pod says: each acquisition
 * is one above an epoch that was written before, or the present time in seconds.
 */
export const ownEpochs: MakeInvariant = (facts: Facts) => {
  let highest = 0;
  return {
    committed({ storage, object }) {
      if (storage !== LEASES) return;
      const { leaseTransitions = 0 } = (object as { spec?: { leaseTransitions?: number } }).spec ?? {};
      const most = Math.max(highest, Math.ceil(facts.server.clock.now() / 1000) + CLOCK_S) + 1;
      highest = Math.max(highest, leaseTransitions);
      if (leaseTransitions > most)
        facts.fail(
          'own epochs',
          `a lease has the epoch ${leaseTransitions}, and the highest that could follow is ${most}`,
        );
    },
  };
};

/** Seconds by which a controller's clock may be wrong. */
const CLOCK_S = 60;
