import type { OwnerReference } from '../../../core/kube/types.ts';
import { type ApiObject, clone } from '../object.ts';
import { crdStorage } from '../registry/crd/types.ts';
import { deleteObject, foregroundFinalizer, orphanFinalizer } from '../registry/deletion.ts';
import type { Registry } from '../registry/registry.ts';
import type { Change } from '../store/versioned.ts';
import type { Controllers } from './controllers.ts';

interface Dependent {
  storage: string;
  namespace: string | undefined;
  name: string;
}

const identify = (storage: string, { metadata }: ApiObject) =>
  `${storage}|${metadata.namespace ?? ''}|${metadata.name}`;

/**
 * Garbage collector: deletes an object when the last of its owners, by UID, is gone. Carries out the Foreground and
 * Orphan policies, which objects carry as finalizers.
 */
export function garbageCollector(registry: Registry, controllers: Controllers): void {
  const { store, catalogue } = registry;
  /** Owner UID to its dependents. */
  const dependents = new Map<string, Map<string, Dependent>>();

  const owners = (object: ApiObject | undefined) => object?.metadata.ownerReferences ?? [];

  const track = ({ storage, type, object, previous }: Pick<Change, 'storage' | 'type' | 'object' | 'previous'>) => {
    const id = identify(storage, object);
    for (const { uid } of owners(previous)) dependents.get(uid)?.delete(id);
    if (type === 'DELETED') return;
    for (const { uid } of owners(object)) {
      const { namespace, name } = object.metadata;
      const ofOwner = dependents.get(uid) ?? new Map<string, Dependent>();
      dependents.set(uid, ofOwner.set(id, { storage, namespace, name }));
    }
  };

  const exists = (owner: OwnerReference, namespace: string | undefined) => {
    const type = catalogue.byKind(owner.apiVersion, owner.kind);
    // An owner of a kind that is not served cannot be looked up: leave its dependents alone.
    if (!type) return true;
    const found = store.get(type.storage, type.namespaced ? namespace : undefined, owner.name);
    return found?.metadata.uid === owner.uid;
  };

  const collect = ({ storage, namespace, name }: Dependent) => {
    const object = store.get(storage, namespace, name);
    const type = catalogue.byStorage(storage);
    if (!object || !type || object.metadata.deletionTimestamp) return;
    const references = owners(object);
    const living = references.filter((owner) => exists(owner, namespace));
    if (references.length === 0) return;
    if (living.length === 0) {
      const preconditions = { uid: object.metadata.uid as string };
      deleteObject(registry, type, namespace, name, { preconditions, propagationPolicy: 'Background', dryRun: false });
    } else if (living.length < references.length) {
      const kept = clone(object);
      kept.metadata.ownerReferences = living;
      registry.force(type, kept);
    }
  };

  const orphan = (owner: ApiObject) => {
    for (const { storage, namespace, name } of dependents.get(owner.metadata.uid as string)?.values() ?? []) {
      const object = store.get(storage, namespace, name);
      const type = catalogue.byStorage(storage);
      if (!object || !type) continue;
      const freed = clone(object);
      const rest = owners(freed).filter(({ uid }) => uid !== owner.metadata.uid);
      if (rest.length > 0) freed.metadata.ownerReferences = rest;
      else delete freed.metadata.ownerReferences;
      registry.force(type, freed);
    }
  };

  const removeFinalizer = (storage: string, object: ApiObject, finalizer: string) => {
    const current = store.get(storage, object.metadata.namespace, object.metadata.name);
    const type = catalogue.byStorage(storage);
    if (!current || !type || current.metadata.uid !== object.metadata.uid) return;
    const without = (o: ApiObject) => ({
      ...o,
      metadata: { ...o.metadata, finalizers: (o.metadata.finalizers ?? []).filter((f) => f !== finalizer) },
    });
    registry.update(type, object.metadata.namespace, object.metadata.name, without, controllers.request);
  };

  /** A foreground deletion waits for the dependents that block it. */
  const foreground = (storage: string, owner: ApiObject) => {
    const uid = owner.metadata.uid as string;
    let blocked = false;
    for (const { storage: below, namespace, name } of dependents.get(uid)?.values() ?? []) {
      const object = store.get(below, namespace, name);
      const type = catalogue.byStorage(below);
      if (!object || !type) continue;
      if (owners(object).some((ref) => ref.uid === uid && ref.blockOwnerDeletion)) blocked = true;
      if (!object.metadata.deletionTimestamp) deleteObject(registry, type, namespace, name, { dryRun: false });
    }
    if (
      !blocked ||
      ![...(dependents.get(uid)?.values() ?? [])].some((d) => store.get(d.storage, d.namespace, d.name))
    ) {
      removeFinalizer(storage, owner, foregroundFinalizer);
    }
  };

  const advance = (storage: string, object: ApiObject) => {
    if (!object.metadata.deletionTimestamp) return;
    if (object.metadata.finalizers?.includes(orphanFinalizer)) {
      orphan(object);
      removeFinalizer(storage, object, orphanFinalizer);
    } else if (object.metadata.finalizers?.includes(foregroundFinalizer)) foreground(storage, object);
  };

  /** Advances the owners' deletions: a foreground deletion continues when a dependent has gone. */
  const ownersOf = (object: ApiObject) => {
    for (const owner of owners(object)) {
      const type = catalogue.byKind(owner.apiVersion, owner.kind);
      const found =
        type && store.get(type.storage, type.namespaced ? object.metadata.namespace : undefined, owner.name);
      if (type && found?.metadata.uid === owner.uid) advance(type.storage, found);
    }
  };

  const customObjects = (definition: ApiObject) => {
    const { group, names } = definition.spec as { group: string; names: { plural: string } };
    const storage = `${names.plural}.${group}`;
    for (const object of store.list(storage)) store.remove(storage, object);
  };

  for (const [storage, objects] of store.contents().collections) {
    for (const object of objects.values()) {
      track({ storage, type: 'ADDED', object });
      const { namespace, name } = object.metadata;
      if (owners(object).length > 0) controllers.soon(() => collect({ storage, namespace, name }));
      if (object.metadata.deletionTimestamp) controllers.soon(() => advance(storage, object));
    }
  }

  store.subscribe((change) => {
    const { storage, type, object } = change;
    const { uid, namespace, name } = object.metadata;
    track(change);
    if (type === 'DELETED') {
      for (const dependent of dependents.get(uid as string)?.values() ?? []) controllers.soon(() => collect(dependent));
      dependents.delete(uid as string);
      if (owners(object).length > 0) controllers.soon(() => ownersOf(object));
      if (storage === crdStorage) controllers.soon(() => customObjects(object));
      return;
    }
    if (owners(object).length > 0) controllers.soon(() => collect({ storage, namespace, name }));
    if (object.metadata.deletionTimestamp) controllers.soon(() => advance(storage, object));
  });
}
