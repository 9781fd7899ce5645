/** Limit of the plain archive, bytes: bounds the time of packing, and the size of what is unpacked. */
export const MAX_PLAIN_BYTES = 256 * 1024 * 1024;
/**
 * Limit of the files, directories and links of a state: bounds the memory and the time of packing if all of them are
 * empty.
 */
export const MAX_ENTRIES = 2 ** 17;
/**
 * Bytes of the plain archive that are read, compressed or decompressed at a time. A compressor works in another thread, and each time
 * costs the way there and back.
 */
export const CHUNK_BYTES = 256 * 1024;
