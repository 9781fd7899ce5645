/**
 * How far off the clock of a controller may be from the API server's: 2 s before the first answer, which is as far as the
 * simulation sets it wrong, and 1 s because answers say whole seconds.
 */
export const CLOCK_MS = 3000;
