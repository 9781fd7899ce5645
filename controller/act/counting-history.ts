import { type Store, StoreFullError } from '../../core/store/store.ts';
import type { ReconcileContext } from './context.ts';

/**
 * The context, with a store that counts the bytes of outputs and artifacts that it takes or has no room for. A log does not
 * count: a turn is none the worse for one that is not stored.
 */
export function countingHistory(context: ReconcileContext): { context: ReconcileContext; history: () => number } {
  const { effects } = context;
  let bytes = 0;
  const put: Store['put'] = async (key, ...args) => {
    const count = (more: number) => {
      if (key.kind === 'Output' || key.kind === 'Artifacts') bytes += more;
      return more;
    };
    try {
      return count(await effects.store.put(key, ...args));
    } catch (error) {
      if (error instanceof StoreFullError) count(error.wanted);
      throw error;
    }
  };
  const store = { ...effects.store, put };
  return { context: { ...context, effects: { ...effects, store } }, history: () => bytes };
}
