/** Every size limit in one place; bytes of UTF-8 JSON unless said otherwise. */
export const KiB = 1024;
export const MiB = 1024 * KiB;

/** Arrays and objects within each other in any JSON of users and agents. Recursive code that reads it stays far from the end of its stack. */
export const MAX_JSON_DEPTH = 64;
/** A turn's input. */
export const MAX_INPUT_BYTES = 128 * KiB;
/** An output kept in the Turn itself; a larger one goes to the store. */
export const MAX_INLINE_OUTPUT_BYTES = 16 * KiB;
/** An output in the store. */
export const MAX_OUTPUT_BYTES = 8 * MiB;
/** The copy of the last turn's output in the Session. */
export const MAX_LAST_OUTPUT_BYTES = 4 * KiB;
/** How often one turn may be begun. */
export const MAX_ATTEMPTS = 10;
export const MAX_ERROR_BYTES = 4 * KiB;
export const MAX_METADATA_BYTES = 4 * KiB;
/** What an agent asks a person, in words. */
export const MAX_PROMPT_BYTES = 4 * KiB;
/** What it shows with that, and what it is answered besides the decision. */
export const MAX_PAYLOAD_BYTES = 16 * KiB;
/** One event of an agent. */
export const MAX_EVENT_BYTES = 16 * KiB;
/** Processes named that a turn left running. */
export const MAX_LEFT_RUNNING = 4096;
/** A log kept in the Turn itself. */
export const MAX_INLINE_LOG_BYTES = 4 * KiB;
/** The kept end of a turn's log. */
export const MAX_LOG_BYTES = 1 * MiB;
/** A sealed state kept in status itself, before base64. */
export const MAX_INLINE_STATE_BYTES = 8 * KiB;
/** A packed state. */
export const MAX_STATE_BYTES = 32 * MiB;
/** Binary content of one Blob: base64 and metadata stay below etcd's 1.5 MiB an object. */
export const BLOB_CHUNK_BYTES = 512 * KiB;
/** All Blobs of a cluster together, so that sessions cannot fill etcd (2 GiB by default). */
export const DEFAULT_STORE_CEILING_BYTES = 256 * MiB;

/** Length of a value's JSON in bytes of UTF-8. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}

/** The longest prefix of `text` that fits `maxBytes` of UTF-8, cut between characters, with an ellipsis when cut. */
export function clip(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text);
  let end = maxBytes - 3;
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString()}…`;
}
