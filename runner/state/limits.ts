/** Bytes of the plain archive: bounds the time that packing takes, and what unpacking can write. */
export const MAX_PLAIN_BYTES = 256 * 1024 * 1024;
/** Files, directories and links of a state: bounds the memory and the time that packing takes where all of them are empty. */
export const MAX_ENTRIES = 2 ** 17;
