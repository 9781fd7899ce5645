import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gunzipSync, gzip, gzipSync } from 'node:zlib';
import type { ServerMeta } from '../kube/types.ts';
import { type BlobSpec, blobKind } from '../resources/blob.ts';
import type { Blob, StoredBlob } from '../resources/kinds.ts';
import { ownedBy } from '../resources/kinds.ts';
import { BLOB_CHUNK_BYTES, KiB } from '../resources/limits.ts';
import {
  ANNOTATION_BLOB_BYTES,
  blobName,
  LABEL_BLOB_KIND,
  LABEL_INCARNATION,
  LABEL_SEQ,
  LABEL_SESSION,
  LABEL_SESSION_UID,
} from '../resources/names.ts';
import { StoreCorruptError, type StoredEntry, type StoreKey, type StoreOwner } from './store.ts';

/** Size up to which the work takes less time than handing it to a thread of the pool and back. */
const SMALL_BYTES = 64 * KiB;

/** Returns the labels that all Blobs of one key have in common. */
export function blobLabels(key: StoreKey): Record<string, string> {
  return {
    [LABEL_SESSION_UID]: key.sessionUID,
    [LABEL_INCARNATION]: String(key.incarnation),
    [LABEL_SEQ]: String(key.seq),
  };
}

/** Returns the Blobs that hold `data`. Text is compressed where that helps; sealed state cannot be compressed. */
export async function toBlobs(key: StoreKey, data: Buffer, owner: StoreOwner): Promise<Blob[]> {
  const compressed = key.kind === 'State' ? data : await compress(data);
  const encoding = compressed.length < data.length ? 'Gzip' : 'Identity';
  const content = encoding === 'Gzip' ? compressed : data;
  const parts = Math.max(1, Math.ceil(content.length / BLOB_CHUNK_BYTES));
  const { namespace, ...place } = key;
  const common = { ...place, session: owner.name, parts, encoding, digest: sha256(data), bytes: data.length } as const;
  return Array.from({ length: parts }, (_, index) => {
    const chunk = content.subarray(index * BLOB_CHUNK_BYTES, (index + 1) * BLOB_CHUNK_BYTES).toString('base64');
    return {
      metadata: {
        name: blobName(key, index + 1),
        namespace,
        labels: { ...blobLabels(key), [LABEL_SESSION]: owner.name, [LABEL_BLOB_KIND]: key.kind },
        annotations: { [ANNOTATION_BLOB_BYTES]: String(chunk.length) },
        ownerReferences: [ownedBy({ metadata: owner })],
      },
      spec: { ...common, part: index + 1, data: chunk },
    };
  });
}

/** Returns the stored entry that a Blob's metadata names; undefined for a Blob that `toBlobs` did not make. */
export function entryOf({ name, namespace, labels = {}, creationTimestamp }: ServerMeta): StoredEntry | undefined {
  const sessionUID = labels[LABEL_SESSION_UID] ?? '';
  const incarnation = Number(labels[LABEL_INCARNATION]);
  const seq = Number(labels[LABEL_SEQ]);
  const part = Number(/-(\d+)$/.exec(name)?.[1]);
  if (!namespace || name !== blobName({ sessionUID, incarnation, seq }, part)) return undefined;
  const kind = blobKind.safeParse(labels[LABEL_BLOB_KIND]).data;
  return { namespace, sessionUID, incarnation, seq, kind, createdAt: Date.parse(creationTimestamp) };
}

/** Joins the content of one key's Blobs, in the order of their parts. Rejects with a StoreCorruptError. */
export async function fromBlobs(what: string, blobs: readonly StoredBlob[]): Promise<Buffer> {
  const first = (blobs[0] as StoredBlob).spec;
  for (const [index, { spec }] of blobs.entries()) {
    if (!isSameContent(spec, first) || spec.part !== index + 1) {
      throw new StoreCorruptError(what, `part ${index + 1} belongs to other content than part 1`);
    }
  }
  const content = Buffer.concat(blobs.map(({ spec }) => Buffer.from(spec.data, 'base64')));
  const data = first.encoding === 'Gzip' ? await unpack(what, content, first.bytes) : content;
  if (data.length !== first.bytes || sha256(data) !== first.digest) {
    throw new StoreCorruptError(what, 'its digest is not that of what was stored');
  }
  return data;
}

/** Reports whether two Blobs are parts of the same content, encoded alike. */
export function isSameContent(a: BlobSpec, b: BlobSpec): boolean {
  const fields = ['sessionUID', 'incarnation', 'seq', 'kind', 'parts', 'encoding', 'digest', 'bytes'] as const;
  return fields.every((field) => a[field] === b[field]);
}

async function compress(data: Buffer): Promise<Buffer> {
  return data.length <= SMALL_BYTES ? gzipSync(data) : promisify(gzip)(data);
}

/** Unpacks at most the stored number of bytes; the content may claim more. */
async function unpack(what: string, content: Buffer, bytes: number): Promise<Buffer> {
  try {
    const limit = { maxOutputLength: Math.max(1, bytes) };
    return bytes <= SMALL_BYTES ? gunzipSync(content, limit) : await promisify(gunzip)(content, limit);
  } catch (error) {
    throw new StoreCorruptError(what, 'it cannot be decompressed', { cause: error });
  }
}

function sha256(data: Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}
