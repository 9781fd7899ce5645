/** The ends of a turn other than success, as errors. */
import { BerthError } from './errors.ts';
import type { Turn } from './generated/wire.ts';

/** The turn has ended, and not as Succeeded. `code` says why in one word. */
export class TurnError extends BerthError {
  override readonly name: string = 'TurnError';
  readonly phase: string;
  /** Code of the turn's error, such as `AgentFailed` or `PodLost`. */
  readonly code: string;
  /** The turn as it ended. */
  readonly turn: Turn;

  constructor(turn: Turn) {
    const { phase = 'Queued', error } = turn.status ?? {};
    const why = error ? `: ${error.code}: ${error.message}` : '';
    super(`turn ${turn.metadata.name} of session ${turn.spec.session} ended as ${phase}${why}`);
    this.phase = phase;
    this.code = error?.code ?? phase;
    this.turn = turn;
  }
}

export class TurnFailed extends TurnError {
  override readonly name = 'TurnFailed';
}

export class TurnTimedOut extends TurnError {
  override readonly name = 'TurnTimedOut';
}

export class TurnCancelled extends TurnError {
  override readonly name = 'TurnCancelled';
}

const CLASSES: Record<string, typeof TurnError> = {
  Failed: TurnFailed,
  TimedOut: TurnTimedOut,
  Cancelled: TurnCancelled,
};

/** Phases in which a turn goes on. Any other is an end, also one of a later release. */
const GOES_ON: readonly string[] = ['Queued', 'Running', 'AwaitingApproval'];

export const isEnd = (phase: string | undefined) => phase !== undefined && !GOES_ON.includes(phase);

export const hasEnded = ({ status }: Turn) => isEnd(status?.phase);

/** Returns the error of a turn that has ended; undefined where it Succeeded. */
export function failureOf(turn: Turn): TurnError | undefined {
  const { phase } = turn.status ?? {};
  return phase === 'Succeeded' ? undefined : new (CLASSES[phase ?? ''] ?? TurnError)(turn);
}
