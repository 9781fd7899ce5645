import { anySignal } from '../../core/abort.ts';
import { mayPass } from '../../core/kube/retry.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import { watchOne } from '../../core/kube/watch-one.ts';
import { type StoredTurn, turns } from '../../core/resources/kinds.ts';
import { type Clock, delay } from '../../core/runtime.ts';

/** Pause between a watch that the server ended and the next; milliseconds. */
const PAUSE_MS = 200;

/** Waits for turns. Each request that waits has a watch of that one object. */
export class Waits {
  readonly #api: Pick<KubeApi, 'list' | 'watch'>;
  readonly #clock: Clock;

  constructor(api: Pick<KubeApi, 'list' | 'watch'>, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  /**
   * Resolves with the turn once `isDone` accepts it, or as last seen after `timeoutMs` or when the signal aborts.
   * Resolves with undefined when the turn is gone or has not been seen by then, also while the cluster does not answer.
   * An error would be wrong there: the caller may have just created the turn, and would create it again.
   */
  async forTurn(
    { namespace, name, known }: { namespace: string; name: string; known?: StoredTurn },
    isDone: (turn: StoredTurn) => boolean | Promise<boolean>,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<StoredTurn | undefined> {
    const timer = new AbortController();
    const cancelTimer = this.#clock.setTimer(timeoutMs, () => timer.abort());
    const over = anySignal(signal, timer.signal);
    const seen = { turn: known };
    let wasAnswered = known !== undefined;
    try {
      while (!over.aborted) {
        try {
          if (await this.#follow(namespace, name, isDone, over, seen)) break;
          wasAnswered = true;
        } catch (error) {
          if (!mayPass(error, wasAnswered)) throw error;
        }
        await delay(this.#clock, PAUSE_MS, over);
      }
      return seen.turn;
    } catch (error) {
      if (!over.aborted) throw error;
      return seen.turn;
    } finally {
      cancelTimer();
    }
  }

  /**
   * Lists, then watches until it is done or the watch ends, for any reason: the next list shows whether the end was a
   * failure.
   */
  async #follow(
    namespace: string,
    name: string,
    isDone: (turn: StoredTurn) => boolean | Promise<boolean>,
    signal: AbortSignal,
    seen: { turn: StoredTurn | undefined },
  ): Promise<boolean> {
    let isListed = false;
    try {
      for await (const turn of watchOne(this.#api, turns, { namespace, name }, { signal })) {
        // A turn never seen may be missing from the list because it was created a moment ago.
        const isGone = turn === undefined && (isListed || seen.turn !== undefined);
        seen.turn = turn;
        isListed = true;
        if (isGone || (turn && (await isDone(turn)))) return true;
      }
    } catch (error) {
      if (!isListed) throw error;
    }
    return false;
  }
}
