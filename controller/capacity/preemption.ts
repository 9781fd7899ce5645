import { Candidates } from './candidates.ts';
import type { Limit } from './limits.ts';
import { fullOf, nameOf, takenOf } from './limits.ts';
import type { Queue } from './queue.ts';
import { type Space, Tally } from './tally.ts';

/** A session that could be preempted, or a pod of a pool that could be given up. */
export interface PreemptionCandidate extends Space {
  /** `namespace/name` of a session; `namespace/pod/name` of a pod, which no session's key equals. */
  key: string;
  class: string;
  /** Kind of rest, in the order in which sessions are preempted. */
  /** `Waiting`: the next turn waits for its concurrency group or for room in the store. */
  rests: 'Pool' | 'Idle' | 'Waiting' | 'AwaitingApproval';
  /** Start of the rest, milliseconds since the epoch. */
  since: number;
  /**
   * True for an idle session that was active a moment ago or could not be suspended lately: it counts as idle and is
   * not preempted.
   */
  spared?: boolean;
  /**
   * True when its preemption has begun: it is chosen first, so that a suspension once begun is not undone for another
   * one.
   */
  isSuspending?: boolean;
}

export interface PreemptionInput {
  queue: Queue;
  /** Slots taken, without those of terminating pods. */
  tally: Tally;
  limits(space: Space): Limit[] | string;
  candidates: PreemptionCandidate[];
  /** Number of idle sessions of a class that are never preempted. */
  minIdle(sessionClass: string): number;
}

/**
 * Chooses whom to preempt for whom: candidate → applicant. In the order of the queue, each applicant gets the slot of
 * the candidate that has rested longest among those that help it. It gets the slots of several where one is not enough: a limit was
 * lowered below what runs, or the applicant waits for slots of more than one limit.
 */
export function planPreemption({
  queue,
  tally: taken,
  limits,
  candidates,
  minIdle,
}: PreemptionInput): Map<string, string> {
  const tally = Tally.copy(taken);
  const left = new Candidates(candidates.filter(({ spared }) => !spared).sort(byRest));
  const idle = new Map<string, number>();
  for (const candidate of candidates) {
    if (candidate.rests === 'Idle') idle.set(candidate.class, (idle.get(candidate.class) ?? 0) + 1);
  }
  const chosen = new Map<string, string>();
  /**
   * Limits that no candidates that are left can free. They stay so: each further choice takes a candidate with at most one slot, an
   * admission takes a slot, and idle sessions that `minIdle` keeps stay kept.
   */
  const stuck = new Set<string>();
  if (left.isEmpty) return chosen;

  queue.walk((applicant) => {
    const limited = limits(applicant);
    if (typeof limited === 'string') return false;
    let full = fullOf(limited, applicant, tally);
    if (full.length === 0) {
      tally.add(applicant);
      return true;
    }
    // A session that claims a pod takes over its slot.
    const claimed = left.first((applicant.warm ?? []).map((pod) => poolKey(applicant.namespace, pod)));
    if (claimed) {
      left.remove(claimed);
      return true;
    }
    if (full.some((limit) => stuck.has(nameOf(limit, applicant)))) return false;
    const going = new Set<PreemptionCandidate>();
    const count = (candidate: PreemptionCandidate, by: 1 | -1) => {
      tally.add(candidate, by);
      if (candidate.rests === 'Idle') idle.set(candidate.class, (idle.get(candidate.class) ?? 0) + by);
    };
    const choose = (candidate: PreemptionCandidate) => {
      going.add(candidate);
      count(candidate, -1);
    };
    const unchoose = (candidate: PreemptionCandidate) => {
      going.delete(candidate);
      count(candidate, 1);
    };
    // All candidates of the widest limit that is full help; once that has a slot, those of the next one do.
    while (full.length > 0) {
      const widest = full[0] as Limit;
      let isPassedOver = false;
      const isFull = () => takenOf(widest, applicant, tally) >= widest.slots;
      for (const candidate of left.of(widest, applicant)) {
        if (going.has(candidate)) continue;
        if (candidate.rests === 'Idle' && (idle.get(candidate.class) ?? 0) <= minIdle(candidate.class)) {
          // These stay with any later choice; those that only a choice for this applicant keeps may be free again.
          if (going.size === 0) left.remove(candidate);
          else isPassedOver = true;
          continue;
        }
        choose(candidate);
        if (!isFull()) break;
      }
      if (isFull()) {
        if (!isPassedOver) stuck.add(nameOf(widest, applicant));
        break;
      }
      full = fullOf(limited, applicant, tally);
    }
    const admitted = full.length === 0;
    // An earlier choice is dropped where a later one frees slots of both limits.
    for (const candidate of [...going]) {
      unchoose(candidate);
      if (admitted && fullOf(limited, applicant, tally).length > 0) choose(candidate);
    }
    for (const candidate of going) {
      left.remove(candidate);
      chosen.set(candidate.key, applicant.key);
    }
    if (admitted) tally.add(applicant);
    return admitted;
  });
  return chosen;
}

/** Key of a pool's pod among the candidates. */
export function poolKey(namespace: string, pod: string): string {
  return `${namespace}/pod/${pod}`;
}

/**
 * Orders candidates: those being preempted, then pods of pools, then idle sessions, then those whose turn waits for its group, then those that
 * wait for an approval; each by the longest rest.
 */
function byRest(a: PreemptionCandidate, b: PreemptionCandidate): number {
  const rank = ({ isSuspending, rests }: PreemptionCandidate) => (isSuspending ? 0 : RANKS[rests]);
  return rank(a) - rank(b) || a.since - b.since || (a.key < b.key ? -1 : 1);
}

const RANKS = { Pool: 1, Idle: 2, Waiting: 3, AwaitingApproval: 4 } as const;
