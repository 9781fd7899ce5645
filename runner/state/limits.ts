/** Limit of the plain archive, bytes: bounds the time of packing, and the size of what is unpacked. */
export const MAX_PLAIN_BYTES = 256 * 1024 * 1024;
/**
 * Limit of the files, directories and links of a state: bounds the memory and the time of packing if all of them are
 * empty.
 */
export const MAX_ENTRIES = 2 ** 17;
