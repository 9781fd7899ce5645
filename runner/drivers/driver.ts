import type { AgentSpec, Decided, Outcome, StartTurn, TurnError } from '../../core/frames/messages.ts';
import type { Conclusion } from '../../core/result/conclude.ts';
import type { Envelope } from '../../core/result/envelope.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import type { StartProcess, Survivor } from '../process/contained.ts';
import type { Directories } from '../system/directories.ts';
import type { TurnLog } from '../text/log.ts';
import type { Flow } from './drain.ts';

/** Facts about the session that the runner is bound to. */
export interface SessionFacts {
  name: string;
  uid: string;
  incarnation: number;
  agent: AgentSpec;
  /** Values of the Secrets that `agent.env` names, by the name of the runner's variable. */
  secrets: ReadonlyMap<string, string>;
  /** Redaction rules. */
  hidden: Hidden;
  /** True if the controller takes what a turn leaves in BERTH_OUTPUT_DIR. */
  takesArtifacts: boolean;
  /** True if the session has files of its agent, in BERTH_AGENT_DIR. */
  hasFiles: boolean;
  /** True if the session has a Python environment, in VIRTUAL_ENV. */
  hasEnvironment: boolean;
}

/** Options of every driver. */
export interface DriverOptions {
  facts: SessionFacts;
  directories: Directories;
  /** PATH of the image. */
  path: string;
  start: StartProcess;
  flow: Flow;
  clock: Clock;
}

export interface TurnRequest {
  turn: StartTurn;
  /** Facts about the restoration, for the first request of an incarnation that is not the session's first. */
  restored: { workspaceReset: boolean; note: string } | undefined;
  /** Decision on the turn's previous question. */
  approval: Decided | undefined;
}

/** Reason why a turn is stopped before its agent ended. */
export interface StopReason {
  outcome: Outcome;
  error: TurnError;
  /** Time from SIGTERM to SIGKILL, milliseconds. */
  graceMs: number;
}

export interface TurnHooks {
  /** Notes that the agent's process is running. */
  started(pid: number): void;
  /** Notes that the agent wrote output. */
  active(): void;
  /** Notes that the agent has ended and its output is being read to its end. */
  collecting(): void;
  /** Takes an event of the agent, before redaction. */
  event(event: unknown): void;
  /** Returns the result that the agent gave over its socket; it wins over printed output. */
  given(): Envelope | undefined;
  log: TurnLog;
  /** Signal that stops the turn; its reason is a StopReason. */
  signal: AbortSignal;
}

export interface Completion extends Conclusion {
  leftRunning: Survivor[];
}

/** Runs turns of one session, one at a time. */
export interface Driver {
  /** Runs a turn. Errors of the agent, its input or its result are a Completion and never a rejection. */
  run(request: TurnRequest, hooks: TurnHooks): Promise<Completion>;
  /** Stops every process of the session: SIGTERM, and SIGKILL after the grace. Resolves when none is left. */
  stop(graceMs: number): Promise<void>;
}
