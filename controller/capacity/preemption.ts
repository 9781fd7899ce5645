import type { Limit } from './limits.ts';
import { fullOf, takenOf } from './limits.ts';
import type { Line } from './queue.ts';
import { type Space, Tally } from './tally.ts';

/** A session that could give up its place. */
export interface Guest extends Space {
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

export interface GiveWayInput {
  line: Line;
  /** Places taken, without those whose pods are on their way out. */
  tally: Tally;
  limits(space: Space): Limit[] | string;
  guests: Guest[];
  /** How many idle sessions of a class keep their places whoever waits. */
  minIdle(sessionClass: string): number;
}

/**
 * Who gives way to whom: guest → applicant. In the order of the line, each who could be admitted then gets the place of the
 * guest that has rested longest, as far as it is one that the applicant waits for: of several where a limit was lowered
 * below what runs, or where it waits for places of more than one kind.
 */
export function givingWay({ line, tally: taken, limits, guests, minIdle }: GiveWayInput): Map<string, string> {
  const tally = Tally.copy(taken);
  const left = new Set(guests.filter(({ spared }) => !spared).sort(byRest));
  const idle = new Map<string, number>();
  for (const guest of guests) {
    if (guest.rests === 'Idle') idle.set(guest.class, (idle.get(guest.class) ?? 0) + 1);
  }
  const chosen = new Map<string, string>();
  if (left.size === 0) return chosen;

  line.walk((applicant) => {
    const limited = limits(applicant);
    if (typeof limited === 'string') return false;
    if (fullOf(limited, applicant, tally).length === 0) {
      tally.add(applicant);
      return true;
    }
    const going = new Set<Guest>();
    const goes = (guest: Guest) => {
      going.add(guest);
      tally.add(guest, -1);
      if (guest.rests === 'Idle') idle.set(guest.class, (idle.get(guest.class) ?? 0) - 1);
    };
    const stays = (guest: Guest) => {
      going.delete(guest);
      tally.add(guest);
      if (guest.rests === 'Idle') idle.set(guest.class, (idle.get(guest.class) ?? 0) + 1);
    };
    for (const guest of left) {
      const full = fullOf(limited, applicant, tally);
      if (full.length === 0) break;
      if (guest.rests === 'Idle' && (idle.get(guest.class) ?? 0) <= minIdle(guest.class)) continue;
      const taken = full.map((limit) => takenOf(limit, applicant, tally));
      goes(guest);
      if (full.every((limit, i) => takenOf(limit, applicant, tally) === taken[i])) stays(guest);
    }
    const admitted = fullOf(limited, applicant, tally).length === 0;
    // One that went before is not needed where a later one frees both kinds of places.
    for (const guest of [...going]) {
      stays(guest);
      if (admitted && fullOf(limited, applicant, tally).length > 0) goes(guest);
    }
    for (const guest of going) {
      left.delete(guest);
      chosen.set(guest.key, applicant.key);
    }
    if (admitted) tally.add(applicant);
    return admitted;
  });
  return chosen;
}

/** Those that are going already, then idle ones, then those that wait for an approval; each the longest resting first. */
function byRest(a: Guest, b: Guest): number {
  const rank = (guest: Guest) => (guest.going ? 0 : guest.rests === 'Idle' ? 1 : 2);
  return rank(a) - rank(b) || a.since - b.since || (a.key < b.key ? -1 : 1);
}
