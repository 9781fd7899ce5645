import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';

interface CarriedOut {
  id: string;
  afterTurn: number;
  /** True once a later turn has existed, even if it is deleted now. */
  later: boolean;
}

/** Requests to suspend that were carried out, so that the session had no pod. */
export class Requests {
  /** Session uid → its last request that was carried out. */
  readonly #carriedOut = new Map<string, CarriedOut>();

  session({ metadata: { uid }, status }: StoredSession): void {
    const { id, afterTurn = 0, done } = status?.suspendHandled ?? {};
    if (!id || !done || status?.podName || this.of(uid, id)) return;
    this.#carriedOut.set(uid, { id, afterTurn, later: false });
  }

  /** Records a turn. A turn without an index comes after all that have one. */
  turn({ status }: StoredTurn, owner: string): void {
    const last = this.#carriedOut.get(owner);
    if (last && (status?.index ?? Number.POSITIVE_INFINITY) > last.afterTurn) last.later = true;
  }

  /** Returns the request; undefined while it is not carried out. */
  of(sessionUID: string, id: string): CarriedOut | undefined {
    const last = this.#carriedOut.get(sessionUID);
    return last?.id === id ? last : undefined;
  }
}
