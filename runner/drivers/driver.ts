import type { AgentSpec, Outcome, StartTurn, TurnError } from '../../core/frames/messages.ts';
import type { Survivor } from '../process/contained.ts';
import type { TurnLog } from '../text/log.ts';

/** What the runner knows about the session that it is bound to. */
export interface SessionFacts {
  name: string;
  uid: string;
  incarnation: number;
  agent: AgentSpec;
  /** Values of the secrets that `agent.env` names, by the name of the runner's variable. */
  secrets: ReadonlyMap<string, string>;
}

export interface TurnRequest {
  turn: StartTurn;
  /** Told to the agent in the first request of an incarnation that is not the session's first. */
  restored: { workspaceReset: boolean; note: string } | undefined;
}

/** Why a turn is stopped before its agent ended. */
export interface StopReason {
  outcome: Outcome;
  error: TurnError;
  /** From SIGTERM to SIGKILL. */
  graceMs: number;
}

export interface TurnHooks {
  /** The agent's process runs. */
  started(pid: number): void;
  /** The agent wrote something. */
  active(): void;
  /** The agent ended; its output is being read to its end. */
  collecting(): void;
  log: TurnLog;
  /** Aborted with a StopReason. */
  signal: AbortSignal;
}

/** What a turn came to; strings are redacted. */
export interface Completion {
  outcome: Outcome;
  output?: unknown;
  error?: TurnError;
  exitCode?: number;
  signal?: string;
  metadata?: Record<string, unknown>;
  turnCount?: number;
  leftRunning: Survivor[];
}

/** Runs turns of one session, one at a time. */
export interface Driver {
  /** Never rejects for what the agent, its input or its result did: that is a Completion. */
  run(request: TurnRequest, hooks: TurnHooks): Promise<Completion>;
  /** Stops every process of the session: SIGTERM, and SIGKILL after the grace. Resolves when none is left. */
  stop(graceMs: number): Promise<void>;
}
