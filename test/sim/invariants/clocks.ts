/**
 * Maximum difference between a controller's clock and the API server's: 2 s before the first answer, which is the
 * maximum error that the simulation sets, and 1 s because answers say whole seconds.
 */
export const CLOCK_MS = 3000;
