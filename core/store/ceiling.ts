import type { KubeApi } from '../kube/types.ts';
import { blobs } from '../resources/kinds.ts';
import { ANNOTATION_BLOB_BYTES } from '../resources/names.ts';
import type { Clock } from '../runtime.ts';
import { StoreFullError } from './store.ts';

export interface CeilingOptions {
  api: Pick<KubeApi, 'list'>;
  clock: Clock;
  /** Bytes of base64 that all Blobs together may hold. */
  ceilingBytes: number;
  /** Absent: all namespaces with one list; else one list for each of these. */
  namespaces?: readonly string[];
}

/** How long a count is good enough while there is room. */
const RECOUNT_MS = 60_000;
const PAGE_SIZE = 500;
/** A Blob that does not say its size, as large as one can be. */
const UNKNOWN_BYTES = 720_000;

/**
 * Keeps the sum of all Blobs below the ceiling. The sum is what a list of their metadata said, and what was reserved
 * since that list began: deletions show at the next list, so the sum is never too low by our own doing.
 */
export class Ceiling {
  readonly #options: CeilingOptions;
  #listed = 0;
  #listedAt = -Infinity;
  /** Reservations since the list began that made `#listed`. */
  #reserved = 0;
  #counting: Promise<void> | undefined;

  constructor(options: CeilingOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#listed + this.#reserved;
  }

  /** Bytes counted within the last minute. */
  async count(signal: AbortSignal): Promise<number> {
    if (this.#options.clock.monotonic() - this.#listedAt > RECOUNT_MS) await this.#recount(signal);
    return this.bytes;
  }

  /** Makes room for `bytes` more, or rejects with a StoreFullError after having counted anew. */
  async reserve(bytes: number, signal: AbortSignal): Promise<void> {
    const { ceilingBytes } = this.#options;
    await this.count(signal);
    if (this.bytes + bytes > ceilingBytes) await this.#recount(signal);
    if (this.bytes + bytes > ceilingBytes) throw new StoreFullError(bytes, this.bytes, ceilingBytes);
    this.#reserved += bytes;
  }

  /** Those who ask at once share one list, which may have begun before they asked. */
  async #recount(signal: AbortSignal): Promise<void> {
    this.#counting ??= this.#list(signal).finally(() => {
      this.#counting = undefined;
    });
    await this.#counting;
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { api, clock, namespaces } = this.#options;
    const startedAt = clock.monotonic();
    const before = this.#reserved;
    let sum = 0;
    for (const namespace of namespaces ?? [undefined]) {
      let token: string | undefined;
      do {
        const page = await api.list(blobs, {
          ...(namespace === undefined ? {} : { namespace }),
          ...(token === undefined ? {} : { continue: token }),
          limit: PAGE_SIZE,
          metadataOnly: true,
          signal,
        });
        token = page.metadata.continue || undefined;
        for (const { metadata } of page.items) {
          sum += Number(metadata.annotations?.[ANNOTATION_BLOB_BYTES] ?? UNKNOWN_BYTES) || UNKNOWN_BYTES;
        }
      } while (token !== undefined);
    }
    this.#listed = sum;
    this.#listedAt = startedAt;
    this.#reserved -= before;
  }
}
