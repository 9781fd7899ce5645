import type { StoredPod } from '../../core/kube/builtin.ts';
import { LABEL_CLASS } from '../../core/resources/names.ts';
import { countsFor, fullOf, type Limit } from './limits.ts';
import type { Queue } from './queue.ts';
import { type Space, Tally } from './tally.ts';

/** Sessions of the queue for which there is a slot. */
export interface Served {
  keys: Set<string>;
  /** True if others are served as soon as these have their slots. */
  othersFollow: boolean;
  /** True if the limits of a session in the queue were not known. */
  isUncertain: boolean;
}

/** What the sessions of the queue are served from. */
export interface Supply {
  /** Slots taken. */
  tally: Tally;
  /** Limit of the installation; absent: none. */
  maxRunning: number | undefined;
  /** Limits of a session; a message where they are not known. */
  limitsOf(space: Space): Limit[] | string;
  /** Pods of pools that can be claimed. */
  available: StoredPod[];
}

/**
 * Goes through the queue in its order. A session is passed over where those before it take the slots that it needs. Until
 * these sessions have their slots, no other session of their namespaces is served. Otherwise a later session of the same
 * namespace could take its slot first, and the next slot would go to the session that was passed over.
 */
export function findServed(queue: Queue, { tally: taken, maxRunning, limitsOf, ...supply }: Supply): Served {
  const found: Served = { keys: new Set(), othersFollow: false, isUncertain: false };
  const [serving, passedOver] = [new Set<string>(), new Set<string>()];
  let { available } = supply;
  if (taken.total >= (maxRunning ?? Number.POSITIVE_INFINITY) && available.length === 0) return found;
  const tally = Tally.copy(taken);
  queue.walk((applicant) => {
    const { key, namespace } = applicant;
    const limits = limitsOf(applicant);
    if (typeof limits === 'string') {
      found.isUncertain = true;
      return false;
    }
    const full = fullOf(limits, applicant, tally);
    if (full.length > 0) {
      const claims = available.find(({ metadata }) => {
        return metadata.namespace === namespace && applicant.warm?.includes(metadata.name);
      });
      available = available.filter((pod) => pod !== claims);
      if (claims) {
        serving.add(namespace);
        found.keys.add(key);
        return true;
      }
      // Pods whose slots would help this session are given up for it, and are claimed by nobody behind it.
      available = available.filter((pod) => !full.some((limit) => countsFor(limit, applicant, spaceOfPod(pod))));
      if (fullOf(limits, applicant, taken).length === 0) passedOver.add(namespace);
      return false;
    }
    if (serving.has(namespace) && passedOver.size > (passedOver.has(namespace) ? 1 : 0)) {
      found.othersFollow = true;
      return false;
    }
    tally.add(applicant);
    serving.add(namespace);
    found.keys.add(key);
    return true;
  });
  return found;
}

function spaceOfPod({ metadata: { namespace, labels } }: StoredPod): Space {
  return { namespace, class: labels?.[LABEL_CLASS] };
}
