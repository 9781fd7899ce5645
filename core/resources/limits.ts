/** Size limits of all kinds; bytes of UTF-8 JSON unless said otherwise. */
export const KiB = 1024;
export const MiB = 1024 * KiB;

/**
 * Maximum nesting of arrays and objects in any JSON of users and agents. It keeps recursive code that reads the JSON
 * far from a stack overflow.
 */
export const MAX_JSON_DEPTH = 64;
/** Limit of a turn's input. */
export const MAX_INPUT_BYTES = 128 * KiB;
/** Limit of the name of a requester, characters. */
export const MAX_REQUESTER = 512;
/** Limit of an output kept in the Turn itself; a larger one goes to the store. */
export const MAX_INLINE_OUTPUT_BYTES = 16 * KiB;
/** Limit of an output in the store. */
export const MAX_OUTPUT_BYTES = 8 * MiB;
/** Limit of the copy of the last turn's output in the Session. */
export const MAX_LAST_OUTPUT_BYTES = 4 * KiB;
/** Limit of the attempts of one turn. */
export const MAX_ATTEMPTS = 10;
export const MAX_ERROR_BYTES = 4 * KiB;
export const MAX_METADATA_BYTES = 4 * KiB;
/** Limit of the text of an agent's question to a person. */
export const MAX_PROMPT_BYTES = 4 * KiB;
/** Limits of the payload of a question, and of the response beside the decision. */
export const MAX_PAYLOAD_BYTES = 16 * KiB;
/** Limit of the files in `agent.files[].inline` together, paths and contents. */
export const MAX_INLINE_FILES_BYTES = 16 * KiB;
/** Limits of the archives of `agent.files` together: bytes of the plain tar archives, headers and padding included, and their entries. */
export const MAX_AGENT_FILES_BYTES = 64 * MiB;
export const MAX_AGENT_FILES = 20_000;
/** Limit of one event of an agent. */
export const MAX_EVENT_BYTES = 16 * KiB;
/** Limit of the named processes that a turn left running. */
export const MAX_LEFT_RUNNING = 4096;
/** Limit of a log kept in the Turn itself. */
export const MAX_INLINE_LOG_BYTES = 4 * KiB;
/** Limit of a turn's log; only its end is kept. */
export const MAX_LOG_BYTES = 1 * MiB;
/** Limits of the artifacts of a turn together, where the class sets none, and their ceilings. */
export const DEFAULT_ARTIFACT_BYTES = 4 * MiB;
export const MAX_ARTIFACT_BYTES = 16 * MiB;
export const DEFAULT_ARTIFACT_FILES = 64;
export const MAX_ARTIFACT_FILES = 256;
/** Limit of an artifact's name, bytes. */
export const MAX_ARTIFACT_NAME_BYTES = 512;
/** Number of the files left out of the artifacts that are named. */
export const MAX_NAMED_LEFT_OUT = 10;
/** Limit of a sealed state kept in the status itself, before base64. */
export const MAX_INLINE_STATE_BYTES = 8 * KiB;
/** Limit of a packed state. */
export const MAX_STATE_BYTES = 32 * MiB;
/** Limit of a packed Python environment. */
export const MAX_ENVIRONMENT_BYTES = 64 * MiB;
/** Limit of the binary content of one Blob: with base64 and metadata it stays below etcd's 1.5 MiB an object. */
export const BLOB_CHUNK_BYTES = 512 * KiB;
/** Limit of all Blobs of a cluster together, so that sessions cannot fill etcd (2 GiB by default). */
export const DEFAULT_STORE_CEILING_BYTES = 256 * MiB;

/** Returns the length of a value's JSON in bytes of UTF-8. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}

/**
 * Returns the longest prefix of `text` that fits `maxBytes` of UTF-8, cut between characters, with an ellipsis when
 * cut.
 */
export function clip(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text);
  let end = maxBytes - 3;
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString()}…`;
}
