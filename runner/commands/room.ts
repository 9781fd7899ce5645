/** A log that takes room. */
export interface RoomUser {
  /** Bytes on disk. */
  readonly bytes: number;
  /** Gives up its oldest bytes; false where it gives up none. */
  giveUp(): boolean;
}

/** Disk space that the logs of a session's commands have together. */
export class Room {
  readonly #limit: number;
  readonly #users = new Set<RoomUser>();
  readonly #waiting = new Set<() => void>();

  /** `limit` is in bytes. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  enter(user: RoomUser): void {
    this.#users.add(user);
  }

  leave(user: RoomUser): void {
    this.#users.delete(user);
    this.freed();
  }

  /** Reports whether there is room for so many more bytes. The largest log that gives up its oldest bytes makes some. */
  has(bytes: number): boolean {
    for (;;) {
      const users = [...this.#users].map((user) => ({ user, bytes: user.bytes }));
      if (users.reduce((sum, each) => sum + each.bytes, 0) + bytes <= this.#limit) return true;
      users.sort((a, b) => b.bytes - a.bytes);
      if (!users.some(({ user }) => user.giveUp())) return false;
    }
  }

  /** Calls back once, when bytes were freed. */
  whenFreed(fn: () => void): void {
    this.#waiting.add(fn);
  }

  /** Called by a user that freed bytes. */
  freed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const fn of waiting) fn();
  }
}
