import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { MAX_LOG_BYTES } from '../resources/limits.ts';
import type { Log } from './messages.ts';

/** Length from which compression saves more than its header and a message's binary part cost, bytes. */
const WORTH_BYTES = 512;

/** Moves the text of a `log` message to the message's binary part, compressed by zstd. A short text stays. */
export function packLog(log: Log): { message: Log; binary?: Buffer } {
  if (log.text.length < WORTH_BYTES) return { message: log };
  return { message: { ...log, text: '' }, binary: zstdCompressSync(log.text) };
}

/** Returns the message with its text; undefined where the binary part is no text of at most 1 MiB. */
export function unpackLog(log: Log, binary: Buffer): Log | undefined {
  if (binary.length === 0) return log;
  try {
    return { ...log, text: zstdDecompressSync(binary, { maxOutputLength: MAX_LOG_BYTES }).toString() };
  } catch {
    return undefined;
  }
}
