/**
 * What crosses the pod boundary: frames up (runner → controller, on stdout) and control lines down (controller → runner,
 * on stdin). Types only: the runner must start without loading a schema library. The controller checks what an agent's
 * pod sent with `core/frames/validate.ts`.
 */

import type { Heuristics } from '../text/hidden.ts';

/** Bumped when an older peer could misread a message. Controller and runner understand each other across one version. */
export const PROTOCOL_VERSION = 1;

/** The largest plain message; a larger one is refused by the sender and dropped by the receiver. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

// ---------------------------------------------------------------------------------------------------------------- up

/** In clear, outside the sequence (seq 0): the answer to an empty line. Nothing is acted on because of it alone. */
export interface Ready {
  /** Random per start of the runner process, hex: the salt of the frame keys. */
  boot: string;
  protocol: number;
  runnerVersion: string;
  podUID: string;
  /** Set once bound. */
  session?: string;
  incarnation?: number;
  /** Highest sequence number given so far. */
  lastSeq: number;
  /** Highest leadership epoch obeyed so far, 0 if none. */
  epoch: number;
}

export interface Bound {
  runnerVersion: string;
  protocol: number;
  /** How descendants are held: by the keeper, or by process groups where no keeper can be had. */
  containment: 'Keeper' | 'ProcessGroup';
  /** Whether the runner's own memory is closed to its agent; false on a laptop. */
  hardened: boolean;
  /** Variables of `agent.env` and paths of `agent.secretFiles` whose secret is too short to be looked for in outputs. Absent: none. */
  shortSecrets?: { env: string[]; files: string[] };
}

export interface Started {
  turn: string;
  attempt: number;
  /** RFC 3339 with milliseconds, by the runner's clock. */
  at: string;
  pid: number;
}

/** What a turn used; what nobody measured is absent. */
export interface Usage {
  /** Waiting for a decision does not count. */
  wallMs: number;
  cpuSeconds?: number;
  /** The most that its processes had at once, as far as it was seen. */
  peakMemoryBytes?: number;
  /** The most that ran at once, as far as it was seen. */
  processes?: number;
}

/** The turn's readable text after redaction. Sent before its result. */
export interface Log {
  turn: string;
  attempt: number;
  /** The last 1 MiB. */
  text: string;
  /** Bytes of the whole text, so what is missing can be said. */
  bytes: number;
  truncated: boolean;
}

/** The packed, sealed state directory: these facts, the sealed bytes as the message's binary part. */
export interface State {
  /** Absent for the answer to `snapshot`. */
  turn?: string;
  /** sha256 of the plain archive, hex. */
  digest: string;
  keyId: string;
  /** Bytes of the plain archive. */
  bytes: number;
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
  /** Any JSON; absent when there is none. */
  output?: unknown;
  error?: TurnError;
  exitCode?: number;
  signal?: string;
  metadata?: Record<string, unknown>;
  turnCount?: number;
  /** How often something was hidden in what the turn returned: output, metadata, events, questions. Absent: never. */
  redactions?: number;
  /** RFC 3339 with milliseconds, by the runner's clock. */
  startedAt: string;
  finishedAt: string;
  /** The state frame this result goes with, or that nothing changed since the last state sent or restored. */
  state: { seq: number; digest: string } | 'Unchanged';
  /** The log frame this result goes with; absent when the turn wrote nothing. */
  logSeq?: number;
  usage?: Usage;
  /** Processes that the agent left running in the background. */
  leftRunning: { pid: number; command: string }[];
}

/** What an agent asks a person; strings are redacted. */
export interface Question {
  /** At most 4 KiB. */
  prompt: string;
  /** Any JSON, at most 16 KiB. */
  payload?: unknown;
  /** How often something was hidden in it; in a frame, in all that the turn has returned so far. Absent: never. */
  redactions?: number;
}

/** A turn waits for a decision. Its state and log are what they are for a result. */
export interface ApprovalRequest extends Question {
  turn: string;
  attempt: number;
  /** Random, given once: a repeated frame has the same. */
  id: string;
  /** Alive: the agent's process waits. Ended: the decision comes with the request of a new one. */
  process: 'Ended' | 'Alive';
  /** RFC 3339 with milliseconds, by the runner's clock. */
  at: string;
  startedAt: string;
  /** Milliseconds that the turn has run so far; waiting does not count. */
  ranMs: number;
  state: { seq: number; digest: string } | 'Unchanged';
  logSeq?: number;
}

/** What an agent tells while it works. */
export interface AgentEvent {
  turn: string;
  attempt: number;
  /** RFC 3339 with milliseconds, by the runner's clock. */
  at: string;
  /** Any JSON, redacted. */
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
    /** Milliseconds since the start, which no clock that is set can change. */
    runningMs?: number;
    /** The request whose decision it was told last. */
    told?: string;
    /** So far. */
    usage?: Usage;
  };
  /** Milliseconds since the last output or end of a turn, which no clock that is set can change. */
  idleMs: number;
  suspended: boolean;
}

/** The frames from..to are no longer held; moves the cursor like a frame. */
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
  result: Result;
  approval: ApprovalRequest;
  event: AgentEvent;
  pong: Pong;
  dropped: Dropped;
  refused: Refused;
  bye: Bye;
}
export type FrameKind = keyof FrameMessages;

/** Kept by the runner until acknowledged; the rest lives in a 1 MiB ring. */
export const DURABLE_KINDS: readonly FrameKind[] = ['log', 'result', 'state', 'approval', 'bye'];

export type Frame = { [K in FrameKind]: FrameOf<K> }[FrameKind];
export interface FrameOf<K extends FrameKind> {
  seq: number;
  kind: K;
  message: FrameMessages[K];
  /** The message's binary part; empty but for `state`. */
  binary: Buffer;
}

// -------------------------------------------------------------------------------------------------------------- down

export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /** The program and its arguments; without it the agent's command gets the request, with this method. */
  command?: string[];
  method?: string;
  timeoutMs: number;
}

export interface AgentSpec {
  driver: 'Command' | 'Server' | 'Shell' | 'Tools';
  /** Program and arguments, empty for the driver Shell; `args` may hold placeholders when `input` is `Args`. */
  command: string[];
  args: string[];
  /** Instead of `args` once the state directory holds a file that `resumeWhen`, a glob, describes; without it, anything. */
  resumeArgs?: string[];
  resumeWhen?: string;
  workingDir?: string;
  /** Values, or the name of a variable of the runner's own environment that holds a Secret's value. */
  env: ({ name: string; value: string } | { name: string; secret: string })[];
  input: 'Stdin' | 'Text' | 'File' | 'Args';
  /** Files that the kubelet makes from Secrets, by their paths in the folder of secrets. */
  secretFiles?: { path: string }[];
  result: 'Envelope' | 'Json' | 'Text' | 'JsonLines';
  /** Where the result stands among lines of JSON. Each `…When` describes a line: what JSON pointers find in it, as text. */
  jsonLines?: {
    resultWhen: Record<string, string>;
    /** Default: all of the line. */
    output?: string;
    /** Default: the line of the result. */
    outputWhen?: Record<string, string>;
    error?: string;
    errorWhen?: Record<string, string>;
    /** Numbers of the result's line, by the names they get. */
    usage?: Record<string, string>;
  };
  /** Settings of the driver Server: whether a turn may be given to it while processes of an earlier turn run. */
  server?: { leftovers: 'Restart' | 'Allow' };
  /** Of the driver Tools, and how many of their calls run at once. */
  tools?: ToolSpec[];
  maxParallel?: number;
  /** Settings of the driver Shell: whether `A && B &` is rewritten so that no subshell waits for B. */
  shell?: { rewriteBackground: boolean };
}

/** What the processes of a session may use; what is absent is not limited. */
export interface Limits {
  /** Of each turn's or tool call's processes together. */
  memoryBytes?: number;
  cpuSeconds?: number;
  fileSizeBytes?: number;
  /** Of the session together; with the driver Tools of each call. */
  processes?: number;
  openFiles?: number;
  coreBytes?: number;
  /** Nothing is started where they cannot be set. */
  required: boolean;
}

/** In clear (attach is TLS and no agent runs before it), accepted once. */
export interface Bind {
  protocol: number;
  session: { name: string; namespace: string; uid: string };
  incarnation: number;
  /** Base64, 32 bytes each, one per direction. */
  keys: { up: string; down: string };
  state: { keyId: string; key: string };
  agent: AgentSpec;
  /** The state that a `restore` will bring; a turn before it is refused. Absent: the session has none yet. */
  restores?: { digest: string; incarnation: number; seq: number };
  /** The state directory is not stored at all, or not above this size of the archive; absent: as large as can be. */
  persistence?: { state: boolean; maxStateBytes?: number };
  /** Patterns of what must not show, besides the values of secrets: core/text/pattern.ts. */
  redact?: string[];
  /** Where what looks like a secret is hidden. Absent: in error texts and logs. */
  heuristics?: Heuristics;
  /** Absent: the processes are not limited. */
  limits?: Limits;
  /** The volume that is the working directory unless the agent names its own. */
  workspace?: { mountPath: string };
  /** Set for every incarnation but the first. */
  restored?: { workspaceReset: boolean; note: string };
}

/** Facts of the sealed state; the sealed bytes are the message's binary part. */
export interface Restore {
  digest: string;
  keyId: string;
}

export interface StartTurn {
  turn: string;
  name: string;
  index: number;
  attempt: number;
  input: unknown;
  timeoutMs: number;
  /** How long it may be silent; absent: for ever. */
  stallMs?: number;
}

/** What somebody decided on a request. */
export interface Decided {
  requestId: string;
  decision: 'Approve' | 'Deny';
  /** Any JSON. */
  response?: unknown;
  note?: string;
}

/** Tells the process that waits for it, or goes on with the turn in a new one. */
export interface ResumeTurn extends StartTurn {
  approval: Decided;
  /** Of the turn, by the runner's clock that started it. */
  startedAt?: string;
  /** Milliseconds that the turn has run before. */
  ranMs: number;
  /** How often something was hidden in what the turn has returned before. Absent: never. */
  redactions?: number;
}

export interface CancelTurn {
  turn: string;
  outcome: 'Cancelled' | 'TimedOut';
  /** Why, where it is neither a person's wish nor the turn's own time-out. */
  reason?: 'LifetimeExceeded';
}

export interface ControlMessages {
  bind: Bind;
  restore: Restore;
  turn: StartTurn;
  approval: ResumeTurn;
  cancel: CancelTurn;
  ack: { through: number };
  resend: { from: number };
  /** `maxStateBytes`: the limit by now; without it the one of `bind`. */
  snapshot: { maxStateBytes?: number };
  suspend: Record<string, never>;
  resume: Record<string, never>;
  ping: Record<string, never>;
  shutdown: { graceMs: number };
}
export type ControlKind = keyof ControlMessages;

export type Control = { [K in ControlKind]: ControlOf<K> }[ControlKind];
export interface ControlOf<K extends ControlKind> {
  /** The leadership that sent it. */
  epoch: number;
  /** Grows within an epoch; a line that does not is a repeat and has no effect. */
  n: number;
  kind: K;
  message: ControlMessages[K];
  binary: Buffer;
}
