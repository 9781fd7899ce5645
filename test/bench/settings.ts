/** Settings of a run, from the environment. */

/** True for a run of few samples, which shows that the benchmark works: `BENCH=short`. */
export const short = process.env.BENCH === 'short';

/** Sections to run: those whose name the pattern matches, all by default. */
export const only = new RegExp(process.env.ONLY ?? '');

/** Checkout of kubernetes-sigs/agent-sandbox; undefined: it is not measured. */
export const agentSandbox = process.env.AGENT_SANDBOX || undefined;

/** Samples of a whole run, or of a short one. */
export const count = (whole: number, few: number): number => (short ? few : whole);

/** Samples of which a median is told. */
export const SAMPLES = count(30, 4);
/** Samples of which a p99 is told. */
export const TAIL_SAMPLES = count(500, 20);
