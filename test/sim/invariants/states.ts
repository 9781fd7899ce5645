import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import type { StateRef } from '../../../core/resources/schema.ts';
import type { ControllerCall } from '../observer.ts';

/** Reports whether `a` comes after `b` in the order of (incarnation, seq), in which states only move forward. */
export function isLater(a: StateRef, b: StateRef | undefined): boolean {
  return !b || a.incarnation > b.incarnation || (a.incarnation === b.incarnation && a.seq > b.seq);
}

/** A state that is in its turn's status and not yet in the session's. */
interface Uncopied {
  turn: string;
  session: string;
  state: StateRef;
  /** Version in which the turn got the state. */
  version: number;
  /** Call that wrote the state. */
  call: ControllerCall | undefined;
  /** Version in which the turn was deleted. */
  deletedIn?: number;
  /** Controllers that were told of the state before they were told of the deletion. */
  toldTo: Set<string>;
}

/**
 * States between their commit and their copy into the session's status. The deletion of the turn in between deletes its
 * state, unless the leader was told of the state: by the answer to its own commit, or by the caches with which it wrote
 * that session's status.
 */
export class UncopiedStates {
  #all: Uncopied[] = [];
  #leader: string | undefined;

  /** Records that the process has written the lease. */
  leads(process: string): void {
    this.#leader = process;
  }

  committed(
    { metadata: { uid } }: StoredTurn,
    session: string,
    at: Pick<Uncopied, 'state' | 'version' | 'call'>,
  ): void {
    this.#all = this.#all.filter(({ turn }) => turn !== uid);
    this.#all.push({ turn: uid, session, ...at, toldTo: new Set() });
  }

  deleted({ metadata: { uid } }: StoredTurn, version: number): void {
    for (const one of this.#all) if (one.turn === uid) one.deletedIn = version;
  }

  /** Records that the status of a session was written. */
  copied({ metadata: { uid }, status }: StoredSession): void {
    this.#all = this.#all.filter(({ session, state }) => session !== uid || isLater(state, status?.state));
  }

  answered(call: ControllerCall): void {
    for (const one of this.#all) if (one.call === call) one.toldTo.add(call.process);
  }

  /** Records that a controller is about to write the status of the session. */
  writes(call: ControllerCall, session: string): void {
    const knew = call.knew('turns');
    for (const { version, deletedIn = Number.POSITIVE_INFINITY, ...one } of this.#all) {
      if (one.session === session && version <= knew && knew < deletedIn) one.toldTo.add(call.process);
    }
  }

  /** Returns the states that the session has to keep beside that in its status, without those lost with their turn. */
  of(session: string): StateRef[] {
    const isKept = ({ deletedIn, toldTo }: Uncopied) => deletedIn === undefined || toldTo.has(this.#leader ?? '');
    return this.#all.filter((one) => one.session === session && isKept(one)).map(({ state }) => state);
  }
}
