/** Phases of a turn, apart from its schema: the command line has no use for zod in most commands. */

const TERMINAL_PHASES = ['Succeeded', 'Failed', 'Cancelled', 'TimedOut'] as const;

export const TURN_PHASES = ['Queued', 'Running', 'AwaitingApproval', ...TERMINAL_PHASES] as const;

export type TurnPhase = (typeof TURN_PHASES)[number];

/** Terminal phases as the elements of a CEL list. */
export const TERMINAL_LIST = TERMINAL_PHASES.map((phase) => `'${phase}'`).join(', ');

/** Field selector of turns that have not ended. */
export const LIVE_TURNS = TERMINAL_PHASES.map((phase) => `status.phase!=${phase}`).join(',');

export function isTerminal(phase: TurnPhase | undefined): boolean {
  return (TERMINAL_PHASES as readonly string[]).includes(phase ?? '');
}
