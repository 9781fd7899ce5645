import type { Change } from '../store/versioned.ts';
import { customResources } from './crd/custom.ts';
import { type Crd, crdStorage } from './crd/types.ts';
import { groupVersion, type ResourceType } from './types.ts';

/** Catalogue of the served resources. Custom ones come and go with their definitions. */
export class Catalogue {
  readonly #builtin: ResourceType[];
  /** Custom resources by the definition's name. */
  readonly #custom = new Map<string, ResourceType[]>();
  #index = new Map<string, ResourceType>();
  readonly #listeners = new Set<() => void>();

  constructor(builtin: ResourceType[]) {
    this.#builtin = builtin;
    this.#reindex();
  }

  find(group: string, version: string, plural: string): ResourceType | undefined {
    return this.#index.get(`${group}/${version}/${plural}`);
  }

  /** Returns any served version of the collection. */
  byStorage(storage: string): ResourceType | undefined {
    return this.all().find((type) => type.storage === storage);
  }

  byKind(apiVersion: string, kind: string): ResourceType | undefined {
    return this.all().find((type) => type.kind === kind && groupVersion(type) === apiVersion);
  }

  /** Reports whether this very type is served: an updated definition makes another one. */
  serves(type: ResourceType): boolean {
    return this.find(type.group, type.version, type.plural) === type;
  }

  all(): ResourceType[] {
    return [...this.#index.values()];
  }

  /** Follows the definitions in the store. */
  apply(change: Pick<Change, 'storage' | 'type' | 'object'>): void {
    if (change.storage !== crdStorage) return;
    if (change.type === 'DELETED') this.#custom.delete(change.object.metadata.name);
    else this.#custom.set(change.object.metadata.name, customResources(change.object as Crd));
    this.#reindex();
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  #reindex(): void {
    const types = [...this.#builtin, ...[...this.#custom.values()].flat()];
    this.#index = new Map(types.map((type) => [`${type.group}/${type.version}/${type.plural}`, type]));
  }
}
