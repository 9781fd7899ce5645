/**
 * Messages of the pod boundary: frames up (runner → controller, on stdout) and control lines down (controller → runner,
 * on stdin). This file holds types only, because the runner must start without loading a schema library. The controller
 * checks the messages of a pod with `core/frames/validate.ts`.
 */

import type { LeftOut, PackedFile } from '../artifacts/packed.ts';
import type { Heuristics } from '../text/hidden.ts';

/**
 * Protocol version, raised when an older peer could misread a message. Controller and runner support a difference of
 * one.
 */
export const PROTOCOL_VERSION = 3;
/** Reports whether peers that speak these versions understand each other. */
export const understand = (one: number, other: number): boolean => Math.abs(one - other) <= 1;
/** First protocol version whose runners take the agent's files. */
export const FILES_PROTOCOL = 2;
/** First protocol version with Python environments and builds. */
export const ENVIRONMENT_PROTOCOL = 3;
/** First protocol version whose controllers read the text of a `log` from its binary part. */
export const PACKED_LOG_PROTOCOL = 3;

/** Limit of a plain message. The sender refuses a larger one and the receiver drops it. */
export const MAX_MESSAGE_BYTES = 65 * 1024 * 1024;

// ---------------------------------------------------------------------------------------------------------------- up

/** Clear answer to an empty line, outside the sequence (seq 0). It alone must not cause any action. */
export interface Ready {
  /** Random hex string per start of the runner process; the salt of the frame keys. */
  boot: string;
  protocol: number;
  runnerVersion: string;
  podUID: string;
  /** UID of the session that the runner is bound to; absent while unbound. */
  session?: string;
  incarnation?: number;
  /** Highest sequence number assigned so far; 0 if none. */
  lastSeq: number;
  /** Highest leadership epoch obeyed so far, 0 if none. */
  epoch: number;
  /** Proof of this epoch, as its leader gave it; absent when it gave none. */
  proof?: string;
}

export interface Bound {
  runnerVersion: string;
  protocol: number;
  /** Means of finding and killing descendants: the keeper, or process groups where no keeper is available. */
  containment: 'Keeper' | 'ProcessGroup';
  /**
   * True if the runner's own memory is closed to its agent and, as PID 1, no signal but SIGTERM, SIGINT and SIGHUP ends it;
   * false on a laptop.
   */
  hardened: boolean;
  /**
   * Variables of `agent.env` and paths of `agent.secretFiles` whose secret is too short to be hidden in outputs.
   * Absent: none.
   */
  shortSecrets?: { env: string[]; files: string[] };
}

export interface Started {
  turn: string;
  attempt: number;
  /** RFC 3339 with milliseconds, by the runner's clock. */
  at: string;
  pid: number;
}

/** Resources that a turn used. A field that was not measured is absent. */
export interface Usage {
  /** Running time in milliseconds, without the time spent waiting for a decision. */
  wallMs: number;
  cpuSeconds?: number;
  /** Highest memory use of all processes together that was observed. */
  peakMemoryBytes?: number;
  /** Highest number of processes at once that was observed. */
  processes?: number;
}

/**
 * Readable text of a turn after redaction. Sent before the turn's result. A controller of `PACKED_LOG_PROTOCOL` or later
 * gets the text in the binary part, compressed: core/frames/log-text.ts.
 */
export interface Log {
  turn: string;
  attempt: number;
  /** The last 1 MiB of the text. */
  text: string;
  /** Length of the whole text, by which a reader knows how much is missing. */
  bytes: number;
  truncated: boolean;
}

/** The packed, sealed state directory: this message holds its facts, and the binary part holds the sealed bytes. */
interface State {
  /** Absent for the answer to `snapshot`. */
  turn?: string;
  /** sha256 of the plain archive, hex. */
  digest: string;
  keyId: string;
  /** Bytes of the plain archive. */
  bytes: number;
}

/**
 * The files that a turn left in BERTH_OUTPUT_DIR, after redaction. Their contents, one after the other and compressed, are
 * the binary part: core/artifacts/packed.ts. Sent before the turn's result.
 */
export interface Artifacts {
  turn: string;
  attempt: number;
  files: PackedFile[];
  /** Absent: nothing was left out. */
  leftOut?: LeftOut;
}

export type Outcome = 'Succeeded' | 'Failed' | 'Cancelled' | 'TimedOut';

export interface TurnError {
  /** A reason of `core/resources/reasons.ts`. */
  code: string;
  message: string;
}

export interface Result {
  turn: string;
  attempt: number;
  outcome: Outcome;
  /** JSON value of any type; absent when there is no output. */
  output?: unknown;
  error?: TurnError;
  exitCode?: number;
  signal?: string;
  metadata?: Record<string, unknown>;
  turnCount?: number;
  /** Number of values hidden in what the turn returned: output, metadata, events and questions. Absent: none. */
  redactions?: number;
  /** RFC 3339 with milliseconds, by the runner's clock. */
  startedAt: string;
  finishedAt: string;
  /**
   * The state frame that belongs to this result. `Unchanged`: nothing changed since the last state that is acknowledged or
   * restored.
   */
  state: { seq: number; digest: string } | 'Unchanged';
  /** Number of the log frame that belongs to this result; absent when the turn wrote nothing. */
  logSeq?: number;
  /** Number of the frame with its artifacts; absent when the turn left nothing in BERTH_OUTPUT_DIR. */
  artifactsSeq?: number;
  usage?: Usage;
  /** Processes that the agent left running in the background. */
  leftRunning: { pid: number; command: string }[];
}

/** Question of an agent to a person; strings are redacted. */
export interface Question {
  /** Text of at most 4 KiB. */
  prompt: string;
  /** JSON value of at most 16 KiB. */
  payload?: unknown;
  /**
   * Number of hidden values in the question. In a frame: in everything that the turn has returned so far. Absent: none.
   */
  redactions?: number;
}

/** Frame of a turn that waits for a decision. Its state and log are as in a result. */
interface ApprovalRequest extends Question {
  turn: string;
  attempt: number;
  /** Random id, assigned once: a repeated frame has the same id. */
  id: string;
  /** Alive: the agent's process waits for the decision. Ended: a new process gets the decision in its request. */
  process: 'Ended' | 'Alive';
  /** RFC 3339 with milliseconds, by the runner's clock. */
  at: string;
  startedAt: string;
  /** Running time of the turn so far, without the time spent waiting, milliseconds. */
  ranMs: number;
  state: { seq: number; digest: string } | 'Unchanged';
  logSeq?: number;
}

/** Event that an agent reports while it works. Runners before protocol 3 send it; later ones only print it. */
interface AgentEvent {
  turn: string;
  attempt: number;
  /** RFC 3339 with milliseconds, by the runner's clock. */
  at: string;
  /** Redacted JSON value of any type. */
  event: unknown;
}

export interface Pong {
  /** The `n` of the ping answered. */
  n: number;
  incarnation: number;
  turn?: {
    uid: string;
    attempt: number;
    phase: 'Running' | 'Collecting' | 'Finished';
    startedAt?: string;
    /** Milliseconds since the turn's start by the monotonic clock, which setting a clock does not change. */
    runningMs?: number;
    /** Id of the last approval request whose decision the agent was told. */
    told?: string;
    /** Usage of the turn so far. */
    usage?: Usage;
  };
  /**
   * Milliseconds since the last output or end of a turn, by the monotonic clock, which setting a clock does not change.
   */
  idleMs: number;
  suspended: boolean;
}

/** The frames from..to are no longer held; moves the cursor like a frame. `counts` leaves artifacts out. */
export interface Dropped {
  from: number;
  to: number;
  counts: Partial<Record<FrameKind, number>>;
}

export interface Refused {
  n: number;
  code: RefusalCode;
  message: string;
}

export type RefusalCode =
  | 'NotBound'
  | 'AlreadyBound'
  | 'NotRestored'
  | 'Busy'
  | 'Suspended'
  | 'AlreadyDone'
  | 'StaleEpoch'
  | 'UnknownTurn'
  | 'UnknownRequest'
  | 'Malformed'
  | 'RestoreFailed'
  | 'FilesFailed'
  | 'EnvironmentFailed'
  | 'EnvironmentMismatch'
  | 'SnapshotFailed';

export interface Bye {
  reason: 'Shutdown' | 'Signal' | 'Fault';
  message: string;
}

export interface FrameMessages {
  ready: Ready;
  bound: Bound;
  started: Started;
  log: Log;
  state: State;
  artifacts: Artifacts;
  result: Result;
  approval: ApprovalRequest;
  event: AgentEvent;
  pong: Pong;
  dropped: Dropped;
  refused: Refused;
  bye: Bye;
}
export type FrameKind = keyof FrameMessages;

/** Frames that the runner keeps until they are acknowledged. Other frames live in a 1 MiB ring. */
export const DURABLE_KINDS: readonly FrameKind[] = ['log', 'result', 'state', 'artifacts', 'approval', 'bye'];

export type Frame = { [K in FrameKind]: FrameOf<K> }[FrameKind];
export interface FrameOf<K extends FrameKind> {
  seq: number;
  kind: K;
  message: FrameMessages[K];
  /** The message's binary part; empty except for `state`, `artifacts` and `log`. */
  binary: Buffer;
}

// -------------------------------------------------------------------------------------------------------------- down

export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /**
   * Program and arguments of the tool. Absent: the agent's command gets the request, with the tool's name as the
   * method.
   */
  command?: string[];
  method?: string;
  timeoutMs: number;
}

export interface AgentSpec {
  driver: 'Command' | 'Server' | 'Shell' | 'Tools';
  /** Program and arguments, empty for the driver Shell; `args` may hold placeholders when `input` is `Args`. */
  command: string[];
  args: string[];
  /**
   * Arguments instead of `args` once the state directory holds a file that matches the glob `resumeWhen`; absent glob:
   * any file.
   */
  resumeArgs?: string[];
  resumeWhen?: string;
  workingDir?: string;
  /** Values, or the name of a variable of the runner's own environment that holds a Secret's value. */
  env: ({ name: string; value: string } | { name: string; secret: string })[];
  input: 'Stdin' | 'Text' | 'File' | 'Args';
  /** Files that the kubelet makes from Secrets, by their paths in the folder of Secrets. */
  secretFiles?: { path: string }[];
  result: 'Envelope' | 'Json' | 'Text' | 'JsonLines';
  /**
   * Rules for finding the result among lines of JSON. Each `…When` maps JSON pointers to the text that a line has
   * there.
   */
  jsonLines?: {
    resultWhen: Record<string, string>;
    /** JSON pointer of the output; default: the whole line. */
    output?: string;
    /** Description of the output's line; default: the line of the result. */
    outputWhen?: Record<string, string>;
    error?: string;
    errorWhen?: Record<string, string>;
    /** JSON pointers to numbers of the result's line, by their names in the usage. */
    usage?: Record<string, string>;
  };
  /** Settings of the driver Server: whether it may be given a turn while processes of an earlier turn run. */
  server?: { leftovers: 'Restart' | 'Allow' };
  /** Settings of the driver Tools: its tools and the maximum number of concurrent calls. */
  tools?: ToolSpec[];
  maxParallel?: number;
  /** Settings of the driver Shell: whether `A && B &` is rewritten so that no subshell waits for B. */
  shell?: { rewriteBackground: boolean };
}

/** Limits of a session's processes; an absent field means no limit. */
export interface Limits {
  /** Memory limit of all processes of one turn or tool call together. */
  memoryBytes?: number;
  cpuSeconds?: number;
  fileSizeBytes?: number;
  /** Process limit of the session; with the driver Tools, of each call. */
  processes?: number;
  openFiles?: number;
  coreBytes?: number;
  /** True if no process may start where the limits cannot be set. */
  required: boolean;
}

/** Limits of the artifacts of a turn together. */
export interface ArtifactLimits {
  maxBytes: number;
  maxFiles: number;
}

/** Clear message that is accepted once. Attach is TLS, and no agent runs before it. */
export interface Bind {
  protocol: number;
  session: { name: string; namespace: string; uid: string };
  incarnation: number;
  /** Base64, 32 bytes each, one per direction. */
  keys: { up: string; down: string };
  state: { keyId: string; key: string };
  agent: AgentSpec;
  /** The state that a `restore` will bring; a turn before it is refused. Absent: the session has no state yet. */
  restores?: { digest: string; incarnation: number; seq: number };
  /**
   * Storage of the state directory, and the maximum size of its archive, plain and packed. Absent: stored up to the usual
   * limits.
   */
  persistence?: { state: boolean; maxStateBytes?: number; maxPackedBytes?: number };
  /**
   * Limits of what a turn leaves in BERTH_OUTPUT_DIR. Absent: the controller takes no artifacts, and there is no such
   * directory. Runners that know of none ignore it.
   */
  artifacts?: ArtifactLimits;
  /** Patterns to hide besides the values of Secrets: core/text/pattern.ts. */
  redact?: string[];
  /** Scope in which text that looks like a secret is hidden. Absent: error texts and logs. */
  heuristics?: Heuristics;
  /** Limits of the processes. Absent: no limits. */
  limits?: Limits;
  /** The volume that is the working directory unless the agent names its own. */
  workspace?: { mountPath: string };
  /** Set for every incarnation but the first. */
  restored?: { workspaceReset: boolean; note: string };
  /** The agent's files, which `files` messages will bring; a turn before them is refused. Absent: it has none. */
  files?: { due: true };
  /**
   * The Python environment that an `environment` message will bring; a turn before it is refused. Its archive is the state
   * of the session that has built it, sealed with that session's key. Absent: it has none.
   */
  environment?: { digest: string; session: string; keyId: string; key: string };
}

/** Facts of the sealed state; the sealed bytes are the message's binary part. */
export interface Restore {
  digest: string;
  keyId: string;
}

/** The archive of the environment; the sealed bytes are the message's binary part. */
export interface EnvironmentArchive {
  digest: string;
}

/**
 * Archive with files of the agent: a gzipped tar, the message's binary part. The archives of one version are unpacked in
 * the order of `index`, from 0 to `count` - 1, once all of them have arrived.
 */
export interface AgentFiles {
  version: string;
  index: number;
  count: number;
}

export interface StartTurn {
  turn: string;
  name: string;
  index: number;
  attempt: number;
  input: unknown;
  timeoutMs: number;
  /** Maximum silence of the turn, milliseconds; absent: no limit. */
  stallMs?: number;
}

/** A person's decision on a request. */
export interface Decided {
  requestId: string;
  decision: 'Approve' | 'Deny';
  /** JSON value of any type. */
  response?: unknown;
  note?: string;
}

/** Passes a decision to the process that waits for it, or continues the turn in a new process. */
export interface ResumeTurn extends StartTurn {
  approval: Decided;
  /** Start time of the turn, by the clock of the runner that started it. */
  startedAt?: string;
  /** Running time of the turn in earlier incarnations, milliseconds. */
  ranMs: number;
  /** Number of values hidden in what the turn returned in earlier incarnations. Absent: none. */
  redactions?: number;
}

export interface CancelTurn {
  turn: string;
  outcome: 'Cancelled' | 'TimedOut';
  /** Reason of the cancellation; absent for a person's request and for the turn's own timeout. */
  reason?: 'LifetimeExceeded';
}

export interface ControlMessages {
  bind: Bind;
  restore: Restore;
  files: AgentFiles;
  environment: EnvironmentArchive;
  turn: StartTurn;
  approval: ResumeTurn;
  cancel: CancelTurn;
  ack: { through: number };
  resend: { from: number };
  /** `maxStateBytes` is the current limit; absent: the limit of `bind`. */
  snapshot: { maxStateBytes?: number };
  suspend: Record<string, never>;
  resume: Record<string, never>;
  ping: Record<string, never>;
  shutdown: { graceMs: number };
}
export type ControlKind = keyof ControlMessages;

export type Control = { [K in ControlKind]: ControlOf<K> }[ControlKind];
interface ControlOf<K extends ControlKind> {
  /** Epoch of the leadership that sent the message, and its proof of that. */
  epoch: number;
  proof?: string;
  /**
   * Number of the message, which grows within an epoch. A line whose number does not grow is a repeat and has no
   * effect.
   */
  n: number;
  kind: K;
  message: ControlMessages[K];
  binary: Buffer;
}
