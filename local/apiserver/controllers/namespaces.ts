import { crdStorage } from '../registry/crd/types.ts';
import { deleteObject } from '../registry/deletion.ts';
import type { Registry } from '../registry/registry.ts';
import type { Controllers } from './controllers.ts';

/** Gives every namespace its `default` service account, and empties namespaces that are being deleted. */
export function namespaceController(registry: Registry, controllers: Controllers): void {
  const { store, catalogue } = registry;

  const provide = (name: string) => {
    const accounts = catalogue.byStorage('serviceaccounts');
    if (!accounts || store.get('serviceaccounts', name, 'default')) return;
    registry.create(accounts, name, { metadata: { name: 'default' } }, controllers.request);
  };

  const empty = (name: string) => {
    const namespace = store.get('namespaces', undefined, name);
    if (!namespace?.metadata.deletionTimestamp) return;
    for (const storage of store.storagesIn(name)) {
      const type = catalogue.byStorage(storage);
      if (!type || storage === crdStorage) continue;
      for (const { metadata } of store.list(storage, name)) {
        if (metadata.deletionTimestamp) continue;
        deleteObject(registry, type, name, metadata.name, { propagationPolicy: 'Background', dryRun: false });
      }
    }
    // Remaining objects have a grace period or finalizers; their deletion triggers this reconcile again.
    if (store.storagesIn(name).length === 0) store.remove('namespaces', namespace);
  };

  const look = (name: string) => {
    const namespace = store.get('namespaces', undefined, name);
    if (!namespace) return;
    if (namespace.metadata.deletionTimestamp) empty(name);
    else provide(name);
  };

  for (const { metadata } of store.list('namespaces')) controllers.soon(() => look(metadata.name));
  store.subscribe(({ storage, type, object }) => {
    const { name, namespace } = object.metadata;
    if (storage === 'namespaces' && type !== 'DELETED') controllers.soon(() => look(name));
    const leaves = type === 'DELETED' && namespace !== undefined;
    if (leaves && (storage === 'serviceaccounts' || isEnding(namespace))) controllers.soon(() => look(namespace));
  });

  function isEnding(name: string): boolean {
    return store.get('namespaces', undefined, name)?.metadata.deletionTimestamp !== undefined;
  }
}
