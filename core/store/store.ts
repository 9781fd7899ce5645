import type { BlobSpec } from '../resources/blob.ts';

/** What is kept, by the frame that brought it: what was put under a key never changes. */
export interface StoreKey {
  namespace: string;
  sessionUID: string;
  incarnation: number;
  seq: number;
  kind: BlobSpec['kind'];
}

/** Something that is stored, as garbage collection sees it. */
export interface StoredEntry extends Omit<StoreKey, 'kind'> {
  /** undefined where the store does not tell. */
  kind: StoreKey['kind'] | undefined;
  /** Milliseconds since the epoch, by the store's clock: when the last part of it was written. */
  createdAt: number;
}

/** The session whose deletion takes what was stored with it. */
export interface StoreOwner {
  name: string;
  uid: string;
}

/** Where states, outputs and logs go that are too large for a status. Safe to use from two leaders at once. */
export interface Store {
  /**
   * Durable when it resolves. Putting the same again is a success without effect, also after a put that failed half-way.
   * Rejects with a StoreFullError, a StoreConflictError or what the store's backend failed with.
   */
  put(key: StoreKey, data: Buffer, owner: StoreOwner, signal: AbortSignal): Promise<void>;
  /** The bytes as they were put, checked against their digest. Rejects with StoreMissingError or StoreCorruptError. */
  get(key: StoreKey, signal: AbortSignal): Promise<Buffer>;
  /** Removes what is there, also parts of a put that failed half-way; nothing there is a success. */
  delete(key: StoreKey, signal: AbortSignal): Promise<void>;
  /** Everything there is, half-written things too; of one session where one is named. */
  list(scope: { namespace?: string; sessionUID?: string }, signal: AbortSignal): Promise<StoredEntry[]>;
  /** Bytes used, by everything in the store, and the ceiling; up to a minute old. */
  usage(signal: AbortSignal): Promise<{ bytes: number; ceiling: number }>;
}

export class StoreFullError extends Error {
  readonly code = 'StoreFull';
  constructor(wanted: number, used: number, ceiling: number) {
    super(
      `The store has no room for ${wanted} bytes: ${used} of ${ceiling} are used. Delete sessions that are no longer needed, or raise the ceiling.`,
    );
    this.name = 'StoreFullError';
  }
}

/** Something else is stored under the key. */
export class StoreConflictError extends Error {
  readonly code = 'StoreConflict';
  constructor(what: string) {
    super(`${what} holds other content than what was to be stored; delete it if it is not needed.`);
    this.name = 'StoreConflictError';
  }
}

export class StoreMissingError extends Error {
  readonly code = 'StoreMissing';
  constructor(what: string, options?: ErrorOptions) {
    super(`${what} does not exist: it was deleted, or never stored.`, options);
    this.name = 'StoreMissingError';
  }
}

export class StoreCorruptError extends Error {
  readonly code = 'StoreCorrupt';
  constructor(what: string, problem: string, options?: ErrorOptions) {
    super(`${what} cannot be read: ${problem}. Restore the object from a backup.`, options);
    this.name = 'StoreCorruptError';
  }
}
