import type { ApiObject } from '../object.ts';
import type { Selector } from '../store/selectors.ts';
import type { Change, VersionedStore } from '../store/versioned.ts';
import { present } from './decode.ts';
import type { ResourceType } from './types.ts';

export type Deliver = (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ApiObject) => void;

/**
 * Delivers the changes after `version` to objects that match `selector`, then later ones, in order. Returns a function
 * that ends it. An object that begins or ceases to match is delivered as added or deleted. Throws 410 when `version` is
 * too old.
 */
export function watchObjects(
  store: VersionedStore,
  type: ResourceType,
  namespace: string | undefined,
  selector: Selector,
  version: number,
  deliver: Deliver,
): () => void {
  const handle = (change: Change) => {
    if (change.storage !== type.storage) return;
    if (namespace !== undefined && change.object.metadata.namespace !== namespace) return;
    const object = present(change.object, type);
    const before = change.previous && selector(present(change.previous, type));
    const now = change.type !== 'DELETED' && selector(object);
    if (now) deliver(before ? 'MODIFIED' : 'ADDED', object);
    else if (before) deliver('DELETED', object);
  };
  for (const change of store.changesSince(type.storage, version)) handle(change);
  return store.subscribe((change) => {
    if (change.version > version) handle(change);
  });
}
