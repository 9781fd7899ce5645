/** Bytes of the packed state: what crosses the pod boundary and is stored. */
export const MAX_PACKED_BYTES = 32 * 1024 * 1024;
/** Bytes of the plain archive: bounds the time that packing takes, and what unpacking can write. */
export const MAX_PLAIN_BYTES = 256 * 1024 * 1024;
