/**
 * What crosses the pod boundary: frames up (runner → controller, on stdout) and control lines down (controller → runner,
 * on stdin). Types only: the runner must start without loading a schema library. The controller checks what an agent's
 * pod sent with `core/frames/validate.ts`.
 */

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
}

export interface Started {
  turn: string;
  attempt: number;
  /** RFC 3339 with milliseconds, by the runner's clock. */
  at: string;
  pid: number;
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
  /** RFC 3339 with milliseconds, by the runner's clock. */
  startedAt: string;
  finishedAt: string;
  /** The state frame this result goes with, or that nothing changed since the last state sent or restored. */
  state: { seq: number; digest: string } | 'Unchanged';
  /** The log frame this result goes with; absent when the turn wrote nothing. */
  logSeq?: number;
  /** Processes that the agent left running in the background. */
  leftRunning: { pid: number; command: string }[];
}

export interface Pong {
  /** The `n` of the ping answered. */
  n: number;
  incarnation: number;
  turn?: { uid: string; attempt: number; phase: 'Running' | 'Collecting' | 'Finished'; startedAt?: string };
  /** RFC 3339 with milliseconds: the last output or end of a turn. */
  lastActivityAt: string;
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
  pong: Pong;
  dropped: Dropped;
  refused: Refused;
  bye: Bye;
}
export type FrameKind = keyof FrameMessages;

/** Kept by the runner until acknowledged; the rest lives in a 1 MiB ring. */
export const DURABLE_KINDS: readonly FrameKind[] = ['log', 'result', 'state', 'bye'];

export type Frame = { [K in FrameKind]: FrameOf<K> }[FrameKind];
export interface FrameOf<K extends FrameKind> {
  seq: number;
  kind: K;
  message: FrameMessages[K];
  /** The message's binary part; empty but for `state`. */
  binary: Buffer;
}

// -------------------------------------------------------------------------------------------------------------- down

export interface AgentSpec {
  driver: 'Command';
  /** Program and arguments; `args` may hold placeholders when `input` is `Args`. */
  command: string[];
  args: string[];
  workingDir?: string;
  /** Values, or the name of a variable of the runner's own environment that holds a Secret's value. */
  env: ({ name: string; value: string } | { name: string; secret: string })[];
  input: 'Stdin' | 'Text' | 'File' | 'Args';
  result: 'Envelope' | 'Json' | 'Text';
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
}

export interface CancelTurn {
  turn: string;
  outcome: 'Cancelled' | 'TimedOut';
}

export interface ControlMessages {
  bind: Bind;
  restore: Restore;
  turn: StartTurn;
  cancel: CancelTurn;
  ack: { through: number };
  resend: { from: number };
  snapshot: Record<string, never>;
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
