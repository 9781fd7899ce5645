import type { BlobSpec } from '../resources/blob.ts';
import type { Holding } from './share.ts';

/** Key of stored content, named after the frame that brought it. The content of a key never changes. */
export interface StoreKey {
  namespace: string;
  sessionUID: string;
  incarnation: number;
  seq: number;
  kind: BlobSpec['kind'];
}

/** Stored content as garbage collection sees it. */
export interface StoredEntry extends Omit<StoreKey, 'kind'> {
  /** Kind of the content; undefined where the store does not know it. */
  kind: StoreKey['kind'] | undefined;
  /** Time at which the last part was written, milliseconds since the epoch, by the store's clock. */
  createdAt: number;
}

/** Session whose deletion deletes the content too. */
export interface StoreOwner {
  name: string;
  uid: string;
}

/** Store of states, outputs and logs that are too large for a status. Safe to use from two leaders at once. */
export interface Store {
  /**
   * Stores the data; durable when it resolves, with the bytes that it takes. A repeated put succeeds without effect, and
   * completes a put that failed half-way. Rejects with a StoreFullError, a StoreConflictError or the error of the store's backend. `withinShare`: refuses
   * also a state that exceeds the share of its namespace only until the state that it replaces is removed.
   */
  put(key: StoreKey, data: Buffer, owner: StoreOwner, signal: AbortSignal, withinShare?: boolean): Promise<number>;
  /**
   * Returns the bytes as they were put, checked against their digest. Rejects with StoreMissingError or
   * StoreCorruptError. `bytes`: about how many they are, where that is known, to read them in fewer steps.
   */
  get(key: StoreKey, signal: AbortSignal, bytes?: number): Promise<Buffer>;
  /** Removes the content, also parts of a put that failed half-way. Succeeds when there is none. */
  delete(key: StoreKey, signal: AbortSignal): Promise<void>;
  /** Lists the stored content, half-written content too; only that of `sessionUID` where it is given. */
  list(scope: { namespace?: string; sessionUID?: string }, signal: AbortSignal): Promise<StoredEntry[]>;
  /** Returns the bytes that the whole store holds, the ceiling and the largest namespaces; up to a minute old. */
  usage(signal: AbortSignal): Promise<StoreUsage>;
  /** Returns what a namespace holds and may hold, by the last count and the writes since; undefined before the first. */
  roomOf(namespace: string): NamespaceUsage | undefined;
  /**
   * Returns what keeps the session from storing its last state again and `history` bytes of outputs and artifacts;
   * undefined: nothing that is known, or its own size.
   */
  shortOf(namespace: string, sessionUID: string, history: number): Shortage | undefined;
  /** Counts anew, so that what was removed counts no more. */
  recount(signal: AbortSignal): Promise<void>;
}

export interface StoreUsage {
  bytes: number;
  ceiling: number;
  /** Namespaces that hold the most, at most ten. */
  largest: NamespaceUsage[];
  /** Namespaces that have a quota. */
  limited: NamespaceUsage[];
}

/** Bytes that a namespace holds in the store. */
export interface NamespaceUsage {
  namespace: string;
  bytes: number;
  /** The same by what gives way and what does not. */
  holding: Holding;
  /** Bytes that all other namespaces hold together. */
  others: number;
  /** Bytes that it may hold, as long as the others hold that much. */
  share: number;
  /** Most bytes that it may hold, however much is free; absent: no such limit. */
  quota?: number;
}

/** Name of what limits a namespace, its quota or its share, and the value of the chart that raises it. */
export function limitOf({ share, quota }: Pick<NamespaceUsage, 'share' | 'quota'>): { name: string; raise: string } {
  return quota === share
    ? { name: 'quota', raise: 'storeBytes of the namespace in quotas of the chart' }
    : { name: 'share', raise: 'controller.storeCeilingBytes' };
}

/** Too little room in a namespace for what a turn stored last time: `wanted` bytes. */
export interface Shortage extends NamespaceUsage {
  wanted: number;
}

export class StoreFullError extends Error {
  readonly code = 'StoreFull';
  readonly wanted: number;
  /** `wanted`: bytes that the namespace was to store. */
  constructor(wanted: number, namespace: string, usage: Pick<NamespaceUsage, 'bytes' | 'share' | 'quota'>) {
    const { name, raise } = limitOf(usage);
    super(
      `Namespace "${namespace}" has no room in the store for ${wanted} bytes: it holds ${usage.bytes}, and its ${name} is ${usage.share}. Delete its sessions or turns that are no longer needed, or raise ${raise}.`,
    );
    this.name = 'StoreFullError';
    this.wanted = wanted;
  }
}

/** Thrown if the key already has other content. */
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
