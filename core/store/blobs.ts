import { defined } from '../defined.ts';
import { isAlreadyExists, isNotFound } from '../kube/errors.ts';
import { eachPage } from '../kube/pages.ts';
import type { KubeApi, ObjectRef } from '../kube/types.ts';
import { type Blob, blobs, type StoredBlob } from '../resources/kinds.ts';
import { LABEL_SESSION_UID, storeKey } from '../resources/names.ts';
import { Ceiling, type CeilingOptions } from './ceiling.ts';
import { blobLabels, entryOf, isSameContent, toBlobs } from './chunks.ts';
import { inGroups } from './groups.ts';
import { readStored } from './read.ts';
import {
  type NamespaceUsage,
  type Shortage,
  type Store,
  StoreConflictError,
  type StoredEntry,
  StoreFullError,
  type StoreKey,
  type StoreOwner,
  type StoreUsage,
} from './store.ts';

/** Attempts of a create whose name is taken and then free. */
const ATTEMPTS = 3;
const PAGE_SIZE = 500;
/** Namespaces that the usage names: a metric has a series for each. */
const NAMED = 10;

/** Methods of the API server that the store uses. */
type BlobApi = Pick<KubeApi, 'get' | 'list' | 'create' | 'delete'>;

export interface BlobStoreOptions extends CeilingOptions {
  api: BlobApi;
  /** Handler of content that was stored, with its bytes. */
  onPut?: (key: StoreKey, owner: StoreOwner, bytes: number) => void;
}

/** The default store: Blob objects in the Session's namespace, owned by the Session. */
export class BlobStore implements Store {
  readonly #api: BlobApi;
  readonly #ceiling: Ceiling;
  readonly #ceilingBytes: number;
  readonly #onPut: NonNullable<BlobStoreOptions['onPut']>;

  constructor(options: BlobStoreOptions) {
    this.#api = options.api;
    this.#ceiling = new Ceiling(options);
    this.#ceilingBytes = options.ceilingBytes;
    this.#onPut = options.onPut ?? (() => {});
  }

  async put(key: StoreKey, data: Buffer, owner: StoreOwner, signal: AbortSignal, withinShare = false): Promise<number> {
    let parts = await toBlobs(key, data, owner);
    const bytes = sizeOf(parts);
    let ended: () => void;
    try {
      ended = await this.#ceiling.reserve(key, sizeOf(parts), signal, withinShare);
    } catch (error) {
      if (!(error instanceof StoreFullError)) throw error;
      // Parts of an earlier attempt need no more room.
      const missing = await inGroups(parts, (blob) => this.#isMissing(blob, signal));
      parts = parts.filter((_, index) => missing[index]);
      // The store may hold more than the ceiling allows, for example after the ceiling was lowered.
      if (parts.length === 0) return bytes;
      ended = await this.#ceiling.reserve(key, sizeOf(parts), signal, withinShare);
    }
    try {
      await inGroups(parts, (blob) => this.#create(blob, signal));
      this.#onPut(key, owner, data.length);
      return bytes;
    } finally {
      ended();
    }
  }

  get(key: StoreKey, signal: AbortSignal, bytes?: number): Promise<Buffer> {
    return readStored(this.#api, key, signal, bytes);
  }

  async delete(key: StoreKey, signal: AbortSignal): Promise<void> {
    const labelSelector = Object.entries(blobLabels(key))
      .map(([name, value]) => `${name}=${value}`)
      .join(',');
    const { namespace } = key;
    const { items } = await this.#api.list(blobs, { namespace, labelSelector, metadataOnly: true, signal });
    await inGroups(items, ({ metadata: { name, uid } }) => this.#remove({ namespace, name }, uid, signal));
    this.#ceiling.removed();
  }

  async list({ namespace, sessionUID }: Parameters<Store['list']>[0], signal: AbortSignal): Promise<StoredEntry[]> {
    const entries = new Map<string, StoredEntry>();
    const options = {
      ...defined({ namespace }),
      ...(sessionUID === undefined ? {} : { labelSelector: `${LABEL_SESSION_UID}=${sessionUID}` }),
      limit: PAGE_SIZE,
      metadataOnly: true,
      signal,
    };
    await eachPage(this.#api, blobs, options, ({ items }) => {
      for (const { metadata } of items) {
        const entry = entryOf(metadata);
        if (!entry) continue;
        const key = `${entry.namespace}/${storeKey(entry.sessionUID, entry.incarnation, entry.seq)}`;
        const createdAt = Math.max(entry.createdAt, entries.get(key)?.createdAt ?? 0);
        entries.set(key, { ...entry, createdAt });
      }
    });
    return [...entries.values()];
  }

  async usage(signal: AbortSignal): Promise<StoreUsage> {
    const bytes = await this.#ceiling.count(signal);
    return {
      bytes,
      ceiling: this.#ceilingBytes,
      largest: this.#ceiling.largest(NAMED),
      limited: this.#ceiling.limited(),
    };
  }

  roomOf(namespace: string): NamespaceUsage | undefined {
    return this.#ceiling.roomOf(namespace);
  }

  shortOf(namespace: string, sessionUID: string, history: number): Shortage | undefined {
    return this.#ceiling.shortOf(namespace, sessionUID, history);
  }

  recount(signal: AbortSignal): Promise<void> {
    return this.#ceiling.recount(signal);
  }

  async #create(blob: Blob, signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#api.create(blobs, blob, { signal });
        return;
      } catch (error) {
        // The name was taken by another leader, by an earlier attempt, or by our own request whose answer was lost.
        if (!isAlreadyExists(error) || attempt === ATTEMPTS) throw error;
        if (!(await this.#isMissing(blob, signal))) return;
      }
    }
  }

  /** Reports whether the Blob must be created. Rejects with a StoreConflictError when other content has the name. */
  async #isMissing(blob: Blob, signal: AbortSignal): Promise<boolean> {
    const { name, namespace } = blob.metadata as { name: string; namespace: string };
    let existing: StoredBlob;
    try {
      existing = await this.#api.get(blobs, { namespace, name }, { signal });
    } catch (error) {
      if (isNotFound(error)) return true;
      throw error;
    }
    const { digest, bytes, data } = existing.spec;
    if (isSameContent(existing.spec, blob.spec) && data === blob.spec.data) return false;
    if (digest !== blob.spec.digest || bytes !== blob.spec.bytes)
      throw new StoreConflictError(`Blob ${namespace}/${name}`);
    // Versions of zlib compress the same content differently: parts of two of them would not fit together.
    await this.#remove({ namespace, name }, existing.metadata.uid, signal);
    return true;
  }

  async #remove(ref: ObjectRef, uid: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#api.delete(blobs, ref, { uid, signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

function sizeOf(parts: readonly Blob[]): number {
  return parts.reduce((sum, { spec }) => sum + spec.data.length, 0);
}
