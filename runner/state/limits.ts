/** Limit of the plain archive, bytes: bounds the time of packing, and the size of what is unpacked. */
export const MAX_PLAIN_BYTES = 256 * 1024 * 1024;
/**
 * Limit of a path within the state, bytes. The kernel's limit of 4,095 is one of the whole path, so that the directory of the next
 * incarnation could be too long for it. This one leaves 1,000 bytes for every directory.
 */
export const MAX_PATH_BYTES = 3072;
/**
 * Limit of the files, directories and links of a state: bounds the memory and the time of packing if all of them are
 * empty.
 */
export const MAX_ENTRIES = 2 ** 17;
/**
 * Limit of a plain archive that is restored, bytes. Earlier releases counted one block for each header, without the records in front
 * of it, and what they stored has to be restored. Name and target of an entry take up to 9,216 bytes more.
 */
export const MAX_RESTORED_BYTES = MAX_PLAIN_BYTES + MAX_ENTRIES * 9216;
/**
 * Bytes of the plain archive that are read, compressed or decompressed at a time. A compressor works in another thread, and each time
 * costs the way there and back.
 */
export const CHUNK_BYTES = 256 * 1024;
