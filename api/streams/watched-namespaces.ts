import { anySignal, onAbort } from '../../core/abort.ts';
import { States, type StatesOptions } from '../../core/follow/states.ts';
import { TransportError } from '../../core/kube/errors.ts';

/** Time for which watches are kept after their last follower has gone, as it may come back; milliseconds. */
const LINGER_MS = 60_000;
/** Time for the first list of a namespace, milliseconds. */
const PATIENCE_MS = 10_000;

interface Watched {
  states: States;
  followers: number;
  cancelStop: () => void;
}

/** Watches of the namespaces that somebody follows: one of sessions and one of turns each, however many follow. */
export class WatchedNamespaces {
  readonly #options: Omit<StatesOptions, 'namespace' | 'session'>;
  readonly #watched = new Map<string, Watched>();

  constructor(options: Omit<StatesOptions, 'namespace' | 'session'>) {
    this.#options = options;
  }

  /**
   * Resolves to the states of the namespace once they are known; they are kept up to date until the signal aborts. Rejects
   * when the cluster does not let them be read, or does not answer for a while.
   */
  async follow(namespace: string, signal: AbortSignal): Promise<States> {
    signal.throwIfAborted();
    const watched = this.#watched.get(namespace) ?? this.#watch(namespace);
    watched.cancelStop();
    watched.followers += 1;
    onAbort(signal, () => this.#release(namespace, watched));
    const { states } = watched;
    const patience = new AbortController();
    const cancel = this.#options.clock.setTimer(PATIENCE_MS, () => patience.abort());
    try {
      await states.synced(anySignal(signal, patience.signal));
      return states;
    } catch (error) {
      if (signal.aborted || !patience.signal.aborted) throw error;
      throw states.problem ?? new TransportError(`the sessions of namespace "${namespace}" could not be read in time`);
    } finally {
      cancel();
    }
  }

  #release(namespace: string, watched: Watched): void {
    watched.followers -= 1;
    if (watched.followers > 0) return;
    watched.cancelStop = this.#options.clock.setTimer(LINGER_MS, () => {
      this.#watched.delete(namespace);
      void watched.states.stop();
    });
  }

  async stop(): Promise<void> {
    const all = [...this.#watched.values()];
    this.#watched.clear();
    for (const { cancelStop } of all) cancelStop();
    await Promise.all(all.map(({ states }) => states.stop()));
  }

  #watch(namespace: string): Watched {
    const states = new States({ ...this.#options, namespace });
    const watched = { states, followers: 0, cancelStop: () => {} };
    this.#watched.set(namespace, watched);
    return watched;
  }
}
