import type { AgentSpec, Decided, Outcome, StartTurn, TurnError } from '../../core/frames/messages.ts';
import type { Conclusion } from '../../core/result/conclude.ts';
import type { Envelope } from '../../core/result/envelope.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import type { Directories } from '../directories.ts';
import type { StartProcess, Survivor } from '../process/contained.ts';
import type { TurnLog } from '../text/log.ts';
import type { Flow } from './drain.ts';

/** What the runner knows about the session that it is bound to. */
export interface SessionFacts {
  name: string;
  uid: string;
  incarnation: number;
  agent: AgentSpec;
  /** Values of the secrets that `agent.env` names, by the name of the runner's variable. */
  secrets: ReadonlyMap<string, string>;
  /** Redaction rules. */
  hidden: Hidden;
}

/** What every driver works with. */
export interface DriverOptions {
  facts: SessionFacts;
  directories: Directories;
  /** The image's. */
  path: string;
  start: StartProcess;
  flow: Flow;
  clock: Clock;
}

export interface TurnRequest {
  turn: StartTurn;
  /** Told to the agent in the first request of an incarnation that is not the session's first. */
  restored: { workspaceReset: boolean; note: string } | undefined;
  /** The decision on what the turn asked before. */
  approval: Decided | undefined;
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
  /** The agent told how far it is; not redacted yet. */
  event(event: unknown): void;
  /** The result that the agent gave over its socket: it wins over what it printed. */
  given(): Envelope | undefined;
  log: TurnLog;
  /** Aborted with a StopReason. */
  signal: AbortSignal;
}

export interface Completion extends Conclusion {
  leftRunning: Survivor[];
}

/** Runs turns of one session, one at a time. */
export interface Driver {
  /** Never rejects for what the agent, its input or its result did: that is a Completion. */
  run(request: TurnRequest, hooks: TurnHooks): Promise<Completion>;
  /** Stops every process of the session: SIGTERM, and SIGKILL after the grace. Resolves when none is left. */
  stop(graceMs: number): Promise<void>;
}
