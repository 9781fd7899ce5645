import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';

interface CarriedOut {
  id: string;
  afterTurn: number;
  /** Whether there was a turn after it at any time since, if only until somebody deleted it. */
  later: boolean;
}

/** Requests to suspend that were carried out: the session had no pod. */
export class Requests {
  /** By session uid, the last one. */
  readonly #carriedOut = new Map<string, CarriedOut>();

  session({ metadata: { uid }, status }: StoredSession): void {
    const { id, afterTurn = 0, done } = status?.suspendHandled ?? {};
    if (!id || !done || status?.podName || this.of(uid, id)) return;
    this.#carriedOut.set(uid, { id, afterTurn, later: false });
  }

  /** One that has no place in the order yet comes after all that have one. */
  turn({ status }: StoredTurn, owner: string): void {
    const last = this.#carriedOut.get(owner);
    if (last && (status?.index ?? Number.POSITIVE_INFINITY) > last.afterTurn) last.later = true;
  }

  /** Undefined while the request is not carried out. */
  of(sessionUID: string, id: string): CarriedOut | undefined {
    const last = this.#carriedOut.get(sessionUID);
    return last?.id === id ? last : undefined;
  }
}
