/**
 * Node's flags for Berth's programs, wherever they are started. SIGUSR1 must not open an inspector in a process that an agent,
 * or anybody else, can signal. With the young generation that Node takes by itself, an agent that prints 500 MB has the
 * runner at twice the memory, no faster (`make bench-runner`), and so has a controller that reads a thousand sessions.
 */
export const NODE_FLAGS = [
  '--disable-sigusr1',
  '--max-semi-space-size=4',
  '--disable-warning=ExperimentalWarning',
] as const;
