import { isNotFound } from '../kube/errors.ts';
import type { KubeApi } from '../kube/types.ts';
import { blobs, type StoredBlob } from '../resources/kinds.ts';
import { BLOB_CHUNK_BYTES } from '../resources/limits.ts';
import { blobName } from '../resources/names.ts';
import { fromBlobs } from './chunks.ts';
import { AT_ONCE, inGroups } from './groups.ts';
import { StoreCorruptError, type StoreKey, StoreMissingError } from './store.ts';

/** Number of parts of the largest content that the kinds allow. */
const MAX_PARTS = 256;

/**
 * Reads stored content with the rights of `api`, which needs `get` on blobs and nothing else. Rejects with
 * StoreMissingError, StoreCorruptError or an ApiError. `bytes`: its size, if known, for all parts to be read at once. `most`:
 * the bytes that it may have at most, where the reader's memory is bounded.
 */
export async function readStored(
  api: Pick<KubeApi, 'get'>,
  key: StoreKey,
  signal?: AbortSignal,
  bytes = 0,
  most = Number.POSITIVE_INFINITY,
): Promise<Buffer> {
  const options = signal ? { signal } : {};
  const read = async (part: number): Promise<StoredBlob> => {
    const name = blobName(key, part);
    try {
      return await api.get(blobs, { namespace: key.namespace, name }, options);
    } catch (error) {
      if (isNotFound(error)) throw new StoreMissingError(`Blob ${key.namespace}/${name}`, { cause: error });
      throw error;
    }
  };
  const likely = Math.min(AT_ONCE, Math.ceil(bytes / BLOB_CHUNK_BYTES));
  const early = new Map(Array.from({ length: Math.max(0, likely - 1) }, (_, index) => [index + 2, read(index + 2)]));
  // A part that there is not is no error: compressed content has fewer.
  for (const part of early.values()) part.catch(() => {});
  const first = await read(1);
  const what = `Blob ${key.namespace}/${first.metadata.name}`;
  const { sessionUID, incarnation, seq, kind, parts } = first.spec;
  if (sessionUID !== key.sessionUID || incarnation !== key.incarnation || seq !== key.seq || kind !== key.kind) {
    throw new StoreCorruptError(what, `it holds ${kind} ${sessionUID}/${incarnation}/${seq}`);
  }
  if (parts > MAX_PARTS) throw new StoreCorruptError(what, `it says that it has ${parts} parts`);
  // Content that does not get smaller by compression is stored as it is.
  if (first.spec.bytes > most || (parts - 1) * BLOB_CHUNK_BYTES > most) {
    throw new StoreCorruptError(what, `it says that it has ${first.spec.bytes} bytes in ${parts} parts`);
  }
  const others = Array.from({ length: parts - 1 }, (_, index) => index + 2);
  return fromBlobs(what, [first, ...(await inGroups(others, (part) => early.get(part) ?? read(part)))]);
}
