/** Bytes of the plain archive: bounds the time that packing takes, and what unpacking can write. */
export const MAX_PLAIN_BYTES = 256 * 1024 * 1024;
