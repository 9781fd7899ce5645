/**
 * Node's flags for Berth's programs, wherever they are started. SIGUSR1 must not open an inspector in a process that an
 * agent, or another user, can signal. The young generation is limited: with Node's default size the runner takes twice
 * the memory, at the same speed, while an agent prints 500 MB (`make bench-runner`). The same holds for a controller
 * that reads a thousand sessions.
 */
export const NODE_FLAGS = [
  '--disable-sigusr1',
  '--max-semi-space-size=4',
  '--disable-warning=ExperimentalWarning',
] as const;
