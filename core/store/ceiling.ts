import { unlessAborted } from '../abort.ts';
import { isClosed } from '../kube/errors.ts';
import { eachPage } from '../kube/pages.ts';
import type { KubeApi } from '../kube/types.ts';
import { blobs } from '../resources/kinds.ts';
import { ANNOTATION_BLOB_BYTES } from '../resources/names.ts';
import type { Clock } from '../runtime.ts';
import { StoreFullError } from './store.ts';

export interface CeilingOptions {
  api: Pick<KubeApi, 'list'>;
  clock: Clock;
  /** Limit of the base64 bytes of all Blobs together. */
  ceilingBytes: number;
  /** Absent: one list of all namespaces. Otherwise one list per namespace. */
  namespaces?: readonly string[];
}

/** Age up to which a count is used while there is room. */
const RECOUNT_MS = 60_000;
const PAGE_SIZE = 500;
/** Assumed size of a Blob without the annotation: the largest possible. */
const UNKNOWN_BYTES = 720_000;

/**
 * Keeps the sum of all Blobs below the ceiling. The sum is that of the last list of their metadata, plus the bytes
 * written since that list began or being written. Our own writes never make it too low; it may be too high until the
 * next list.
 */
export class Ceiling {
  readonly #options: CeilingOptions;
  #listed = 0;
  #listedAt = -Infinity;
  /** Bytes written, or perhaps written, since the list began. */
  #written = 0;
  #beingWritten = 0;
  #counting: Promise<void> | undefined;
  /** Bytes in each listed namespace when it could last be read. */
  readonly #held = new Map<string, number>();

  constructor(options: CeilingOptions) {
    this.#options = options;
  }

  /** Returns the number of bytes, counted within the last minute. */
  async count(signal: AbortSignal): Promise<number> {
    if (this.#options.clock.monotonic() - this.#listedAt > RECOUNT_MS) await this.#recount(signal);
    return this.#bytes;
  }

  /**
   * Reserves `bytes` more, or rejects with a StoreFullError after a new count. The caller calls the returned function
   * when the write has ended, with or without success.
   */
  async reserve(bytes: number, signal: AbortSignal): Promise<() => void> {
    const { ceilingBytes } = this.#options;
    await this.count(signal);
    if (this.#bytes + bytes > ceilingBytes) await this.#recount(signal);
    if (this.#bytes + bytes > ceilingBytes) throw new StoreFullError(bytes, this.#bytes, ceilingBytes);
    this.#beingWritten += bytes;
    return () => {
      this.#beingWritten -= bytes;
      this.#written += bytes;
    };
  }

  get #bytes(): number {
    return this.#listed + this.#written + this.#beingWritten;
  }

  /** Counts anew. Concurrent callers share one list; a caller whose signal aborts leaves it to the others. */
  async #recount(signal: AbortSignal): Promise<void> {
    this.#counting ??= this.#list().finally(() => {
      this.#counting = undefined;
    });
    await unlessAborted(this.#counting, signal);
  }

  async #list(): Promise<void> {
    const { clock, namespaces } = this.#options;
    const startedAt = clock.monotonic();
    const before = this.#written;
    let sum = 0;
    if (namespaces) for (const namespace of namespaces) sum += await this.#heldIn(namespace);
    else sum = await this.#sum(undefined);
    this.#listed = sum;
    this.#listedAt = startedAt;
    this.#written -= before;
  }

  /** Counts one namespace. A namespace that cannot be read must not keep results of the others from being stored. */
  async #heldIn(namespace: string): Promise<number> {
    try {
      this.#held.set(namespace, await this.#sum(namespace));
    } catch (error) {
      if (!isClosed(error)) throw error;
    }
    return this.#held.get(namespace) ?? 0;
  }

  async #sum(namespace: string | undefined): Promise<number> {
    let sum = 0;
    const scope = namespace === undefined ? {} : { namespace };
    await eachPage(this.#options.api, blobs, { ...scope, limit: PAGE_SIZE, metadataOnly: true }, ({ items }) => {
      for (const { metadata } of items) {
        sum += Number(metadata.annotations?.[ANNOTATION_BLOB_BYTES]) || UNKNOWN_BYTES;
      }
    });
    return sum;
  }
}
