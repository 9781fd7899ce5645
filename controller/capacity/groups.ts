import type { GroupView } from '../world/capacity-view.ts';
import { notKnown } from './messages.ts';
import { smallest } from './smallest.ts';

/** A session's part in its concurrency group. */
export interface Membership {
  /** `namespace/name` of the group. */
  group: string;
  /** Limit that the session asks for; absent when it no longer counts, for example because it is finished. */
  limit?: number | undefined;
  /** Names of its running turns. */
  running: string[];
}

interface Group {
  members: Map<string, Membership>;
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
  readonly #groupOf = new Map<string, string>();
  readonly #pinned = new Set<string>();
  readonly #onFree: (session: string) => void;
  readonly #epoch: () => number;
  #open = false;

  /** `onFree` is called with sessions whose turn may begin now; `epoch` returns the epoch of the present leadership. */
  constructor(onFree: (session: string) => void, epoch: () => number) {
    this.#onFree = onFree;
    this.#epoch = epoch;
  }

  /** Allows turns to begin; before it, no further turn of any group begins. See the ledger's `open`. */
  open(): void {
    this.#open = true;
    for (const name of [...this.#groups.keys()]) this.#notify(name);
  }

  close(): void {
    this.#open = false;
  }

  /** Updates a session's part in its group; undefined when it has none. */
  update(session: string, membership: Membership | undefined): void {
    const before = this.#groupOf.get(session);
    if (before !== undefined && before !== membership?.group) {
      this.#count(this.#group(before), session, undefined);
      this.#forget(session, before);
    }
    if (!membership) return;
    this.#groupOf.set(session, membership.group);
    this.#count(this.#group(membership.group), session, membership);
    this.#notify(membership.group);
  }

  /** The group that the session was last observed in. */
  groupOf(session: string): string | undefined {
    return this.#groupOf.get(session);
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
    const group = this.#groupIn(session);
    group?.waiting.delete(session);
    group?.reserved.add(session);
  }

  /** Notes that the session's next turn waits for the group. */
  wait(session: string, since: number): void {
    const waiting = this.#groupIn(session)?.waiting;
    const before = waiting?.get(session);
    waiting?.set(session, since);
    // The place that the session may have been offered is free for another.
    if (before !== undefined && before < since) this.#notify(this.#groupOf.get(session) as string);
  }

  /** Keeps the session's reservation until `unpin`: its write may have taken effect. */
  pin(session: string): void {
    this.#pinned.add(session);
  }

  unpin(session: string): void {
    this.#pinned.delete(session);
  }

  /** Drops the session's wait, and its reservation unless it is pinned. */
  leave(session: string): void {
    const group = this.#groupIn(session);
    const waited = group?.waiting.delete(session);
    const reserved = !this.#pinned.has(session) && group?.reserved.delete(session);
    if (waited || reserved) this.#notify(this.#groupOf.get(session) as string);
  }

  #groupIn(session: string): Group | undefined {
    const name = this.#groupOf.get(session);
    return name === undefined ? undefined : this.#group(name);
  }

  #group(name: string): Group {
    let group = this.#groups.get(name);
    if (!group) {
      group = { members: new Map(), running: 0, limits: new Map(), reserved: new Set(), waiting: new Map() };
      this.#groups.set(name, group);
    }
    return group;
  }

  #count(group: Group, session: string, membership: Membership | undefined): void {
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

  #forget(session: string, name: string): void {
    const group = this.#group(name);
    this.#groupOf.delete(session);
    group.reserved.delete(session);
    group.waiting.delete(session);
    this.#pinned.delete(session);
    if (group.members.size === 0) this.#groups.delete(name);
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
