import type { Limit } from './limits.ts';
import { fullOf, takenOf } from './limits.ts';
import type { Queue } from './queue.ts';
import { type Space, Tally } from './tally.ts';

/** A session that could give up its place. */
export interface PreemptionCandidate extends Space {
  /** `namespace/name`. */
  key: string;
  class: string;
  /** Idle ones go before those that wait for an approval. */
  rests: 'Idle' | 'AwaitingApproval';
  /** Since when, milliseconds since the epoch. */
  since: number;
  /** It is idle, but was active a moment ago or could not be suspended lately: it counts as idle and stays. */
  spared?: boolean;
  /** It is giving way already: it goes first, so that a suspension once begun is not undone for another one. */
  going?: boolean;
}

export interface PreemptionInput {
  queue: Queue;
  /** Places taken, without those whose pods are on their way out. */
  tally: Tally;
  limits(space: Space): Limit[] | string;
  candidates: PreemptionCandidate[];
  /** How many idle sessions of a class keep their places whoever waits. */
  minIdle(sessionClass: string): number;
}

/**
 * Who gives way to whom: guest → applicant. In the order of the line, each who could be admitted then gets the place of the
 * guest that has rested longest, as far as it is one that the applicant waits for: of several where a limit was lowered
 * below what runs, or where it waits for places of more than one kind.
 */
export function planPreemption({
  queue,
  tally: taken,
  limits,
  candidates,
  minIdle,
}: PreemptionInput): Map<string, string> {
  const tally = Tally.copy(taken);
  const left = new Set(candidates.filter(({ spared }) => !spared).sort(byRest));
  const idle = new Map<string, number>();
  for (const candidate of candidates) {
    if (candidate.rests === 'Idle') idle.set(candidate.class, (idle.get(candidate.class) ?? 0) + 1);
  }
  const chosen = new Map<string, string>();
  if (left.size === 0) return chosen;

  queue.walk((applicant) => {
    const limited = limits(applicant);
    if (typeof limited === 'string') return false;
    if (fullOf(limited, applicant, tally).length === 0) {
      tally.add(applicant);
      return true;
    }
    const going = new Set<PreemptionCandidate>();
    const goes = (candidate: PreemptionCandidate) => {
      going.add(candidate);
      tally.add(candidate, -1);
      if (candidate.rests === 'Idle') idle.set(candidate.class, (idle.get(candidate.class) ?? 0) - 1);
    };
    const stays = (candidate: PreemptionCandidate) => {
      going.delete(candidate);
      tally.add(candidate);
      if (candidate.rests === 'Idle') idle.set(candidate.class, (idle.get(candidate.class) ?? 0) + 1);
    };
    for (const candidate of left) {
      const full = fullOf(limited, applicant, tally);
      if (full.length === 0) break;
      if (candidate.rests === 'Idle' && (idle.get(candidate.class) ?? 0) <= minIdle(candidate.class)) continue;
      const taken = full.map((limit) => takenOf(limit, applicant, tally));
      goes(candidate);
      if (full.every((limit, i) => takenOf(limit, applicant, tally) === taken[i])) stays(candidate);
    }
    const admitted = fullOf(limited, applicant, tally).length === 0;
    // One that went before is not needed where a later one frees both kinds of places.
    for (const candidate of [...going]) {
      stays(candidate);
      if (admitted && fullOf(limited, applicant, tally).length > 0) goes(candidate);
    }
    for (const candidate of going) {
      left.delete(candidate);
      chosen.set(candidate.key, applicant.key);
    }
    if (admitted) tally.add(applicant);
    return admitted;
  });
  return chosen;
}

/** Those that are going already, then idle ones, then those that wait for an approval; each the longest resting first. */
function byRest(a: PreemptionCandidate, b: PreemptionCandidate): number {
  const rank = (candidate: PreemptionCandidate) => (candidate.going ? 0 : candidate.rests === 'Idle' ? 1 : 2);
  return rank(a) - rank(b) || a.since - b.since || (a.key < b.key ? -1 : 1);
}
