import type { GroupView } from '../observed/capacity-view.ts';
import { notKnown } from './messages.ts';
import { smallest } from './smallest.ts';
import type { Unconfirmed } from './unconfirmed.ts';

/** A session's part in concurrency groups. */
export interface Membership {
  /** `namespace/name` of the group of its next turn; undefined for none. */
  group: string | undefined;
  /** Limit in the session's spec; undefined when it no longer counts, for example because it is finished. */
  limit?: number | undefined;
  /** Names of its running turns of that group. */
  running: string[];
  /** Its running turns that began in other groups. */
  others?: { group: string; running: string[] }[];
}

/** A session's part in one group. */
type Part = Pick<Membership, 'limit' | 'running'>;

interface Group {
  members: Map<string, Part>;
  /** Number of running turns of all members. */
  running: number;
  /** Number of members that ask for each limit. */
  limits: Map<number, number>;
  /** Sessions with a reserved turn that does not show as running yet. */
  reserved: Set<string>;
  /** Session → start of its turn's wait for the group, milliseconds since the epoch. */
  waiting: Map<string, number>;
}

/**
 * Concurrency groups: the running turns of their sessions. The part of a turn about to run is reserved in the same step in
 * which the part is found free, so two sessions never take the last one. First come, first served.
 */
export class Groups {
  readonly #groups = new Map<string, Group>();
  /** Session → the group of its next turn. */
  readonly #groupOf = new Map<string, string>();
  /** Session → the groups in which it has a part. */
  readonly #partsOf = new Map<string, Set<string>>();
  /** Session → the groups in which it has a reservation. */
  readonly #reservedIn = new Map<string, Set<string>>();
  /** Sessions whose turn may still be written as running. */
  readonly #unconfirmed: Unconfirmed;
  readonly #onFree: (session: string) => void;
  readonly #epoch: () => number;
  #open = false;

  /** `onFree` is called with sessions whose turn may begin now, or may be looked at again; `epoch` returns the epoch of the present leadership. */
  constructor(onFree: (session: string) => void, epoch: () => number, unconfirmed: Unconfirmed) {
    this.#onFree = onFree;
    this.#epoch = epoch;
    this.#unconfirmed = unconfirmed;
  }

  /** Allows turns to begin; before it, no further turn of any group begins. See the ledger's `open`. */
  open(): void {
    this.#open = true;
    for (const name of [...this.#groups.keys()]) this.#notify(name);
  }

  close(): void {
    this.#open = false;
    this.#unconfirmed.close();
  }

  /**
   * Updates a session's part in its groups; undefined when it has none. A reservation stays where it was made until `leave`, or
   * until the session reserves or waits elsewhere: the write of the turn that it was made for may be under way.
   */
  update(session: string, membership: Membership | undefined): void {
    const { group: wanted, limit, running = [], others = [] } = membership ?? {};
    const parts = new Map<string, Part>(others.map(({ group, running }) => [group, { running }]));
    if (wanted !== undefined) {
      const also = parts.get(wanted)?.running ?? [];
      parts.set(wanted, { limit, running: [...running, ...also] });
    }
    const left = [...(this.#partsOf.get(session) ?? [])].filter((group) => !parts.has(group));
    const before = this.#groupOf.get(session);
    if (before !== undefined && before !== wanted) {
      this.#group(before).waiting.delete(session);
      this.#groupOf.delete(session);
    }
    if (wanted !== undefined) this.#groupOf.set(session, wanted);
    if (parts.size > 0) this.#partsOf.set(session, new Set(parts.keys()));
    else this.#partsOf.delete(session);
    for (const name of left) this.#count(this.#group(name), session, undefined);
    for (const [name, part] of parts) this.#count(this.#group(name), session, part);
    for (const name of [...left, ...parts.keys()]) this.#changed(name);
  }

  /** Reports whether the group admits the session's next turn, which has waited since `since`. */
  view(session: string, since: number): GroupView {
    const name = this.#groupOf.get(session);
    if (name === undefined) return { free: true };
    const group = this.#group(name);
    if (group.reserved.has(session)) return { free: true };
    const limit = limitOf(group);
    let ahead = 0;
    for (const [other, at] of group.waiting) {
      if (other !== session && (at !== since ? at < since : other < session)) ahead++;
    }
    if (this.#open && taken(group) + ahead < limit) return { free: true };
    const running = [...group.members].flatMap(([key, member]) => member.running.map((turn) => `${turn} of ${key}`));
    const unknown = this.#open ? undefined : notKnown('How many turns of the concurrency group run', this.#epoch());
    return { free: false, group: name, limit, running, unknown };
  }

  /** Sessions whose next turn waits for its group. */
  *waiting(): Iterable<string> {
    for (const { waiting } of this.#groups.values()) yield* waiting.keys();
  }

  /** Promises the session its next turn: it counts from now on. */
  reserve(session: string): void {
    const name = this.#groupOf.get(session);
    if (name === undefined) return;
    this.#drop(session, name);
    const group = this.#group(name);
    group.waiting.delete(session);
    group.reserved.add(session);
    this.#reservedIn.set(session, (this.#reservedIn.get(session) ?? new Set()).add(name));
  }

  /** Notes that the session's next turn waits for the group. */
  wait(session: string, since: number): void {
    const name = this.#groupOf.get(session);
    if (name === undefined) return;
    this.#drop(session, name);
    const { waiting } = this.#group(name);
    const before = waiting.get(session);
    waiting.set(session, since);
    // The place that the session may have been offered is free for another.
    if (before !== undefined && before < since) this.#notify(name);
  }

  /** Keeps the session's reservations until it is known whether its turn was written as running. */
  confirmLater(session: string): void {
    this.#unconfirmed.await(session, () => this.confirm(session));
  }

  /** Counts the session's turn as the caches show it from now on. */
  confirm(session: string): void {
    if (this.#unconfirmed.end(session)) this.#onFree(session);
  }

  /** Drops the session's wait, and its reservations unless one is unconfirmed. */
  leave(session: string): void {
    const name = this.#groupOf.get(session);
    const waited = name !== undefined && this.#groups.get(name)?.waiting.delete(session);
    this.#drop(session);
    if (waited) this.#changed(name);
  }

  /** Drops the session's reservations in all groups but this, unless one is unconfirmed. */
  #drop(session: string, kept?: string): void {
    if (this.#unconfirmed.has(session)) return;
    const groups = this.#reservedIn.get(session) ?? new Set();
    for (const name of [...groups].filter((one) => one !== kept)) {
      groups.delete(name);
      this.#groups.get(name)?.reserved.delete(session);
      this.#changed(name);
    }
    if (groups.size === 0) this.#reservedIn.delete(session);
  }

  #group(name: string): Group {
    let group = this.#groups.get(name);
    if (!group) {
      group = { members: new Map(), running: 0, limits: new Map(), reserved: new Set(), waiting: new Map() };
      this.#groups.set(name, group);
    }
    return group;
  }

  #count(group: Group, session: string, membership: Part | undefined): void {
    const before = group.members.get(session);
    group.running += (membership?.running.length ?? 0) - (before?.running.length ?? 0);
    if (before?.limit !== membership?.limit) {
      for (const [limit, by] of [
        [membership?.limit, 1],
        [before?.limit, -1],
      ] as const) {
        if (limit === undefined) continue;
        const count = (group.limits.get(limit) ?? 0) + by;
        if (count > 0) group.limits.set(limit, count);
        else group.limits.delete(limit);
      }
    }
    if (membership) group.members.set(session, membership);
    else group.members.delete(session);
  }

  /** Offers sessions of a group what is free in it, and forgets a group without members. */
  #changed(name: string): void {
    const group = this.#groups.get(name);
    if (!group) return;
    if (group.members.size + group.reserved.size + group.waiting.size === 0) this.#groups.delete(name);
    else this.#notify(name);
  }

  /** Calls `onFree` for the first waiting sessions, as many as may begin. */
  #notify(name: string): void {
    const group = this.#groups.get(name);
    if (!this.#open || !group || group.waiting.size === 0) return;
    const free = limitOf(group) - taken(group);
    if (free <= 0) return;
    const order = smallest(group.waiting, free, ([a, at], [b, bt]) => at - bt || (a < b ? -1 : 1));
    for (const [session] of order) this.#onFree(session);
  }
}

function limitOf({ limits }: Group): number {
  return Math.min(Number.POSITIVE_INFINITY, ...limits.keys());
}

function taken({ members, running, reserved }: Group): number {
  let count = running;
  for (const session of reserved) if (!members.get(session)?.running.length) count++;
  return count;
}
