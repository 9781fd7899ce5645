import { unlessAborted } from '../../core/abort.ts';
import { type Store, StoreFullError } from '../../core/store/store.ts';

/** Times that room is made for one put: what turns have stored is smaller in the store than they say. */
const MOST_TIMES = 5;

/** The part of the store that reconciles of sessions use. */
export type SessionStore = Pick<Store, 'put' | 'get' | 'shortOf' | 'recount'>;

/**
 * The store, but nothing is refused before all that may give way has gone: superseded states, before a state that replaces
 * another may exceed the share, and then history. `makeRoom` removes superseded states from a namespace, or else about so many
 * bytes of its history, and resolves with whether there was anything to remove.
 */
export function sessionStore(
  store: Store,
  makeRoom: (namespace: string, bytes: number) => Promise<boolean>,
): SessionStore {
  const put: Store['put'] = async (key, data, owner, signal) => {
    for (let times = 0; ; times++) {
      try {
        return await store.put(key, data, owner, signal, times === 0);
      } catch (error) {
        if (!(error instanceof StoreFullError) || times === MOST_TIMES) throw error;
        const isMade = await unlessAborted(makeRoom(key.namespace, times === 0 ? 0 : error.wanted), signal);
        if (!isMade && times > 0) throw error;
      }
    }
  };
  return {
    put,
    get: (...args) => store.get(...args),
    shortOf: (...args) => store.shortOf(...args),
    recount: (signal) => store.recount(signal),
  };
}
