/**
 * Messages of the pod boundary: frames up (runner → controller, on stdout) and control lines down (controller → runner,
 * on stdin). The runner must start without loading a schema library, so this file has the types of the frames and not their
 * schemas, with which the controller checks what a pod sends (`validate.ts`). `catalogue.ts` lists all messages.
 */

import type { Heuristics } from '../text/hidden.ts';
import type { ControlKind, FrameKind } from './catalogue.ts';
import type { FrameMessages } from './schemas.ts';

export type { ControlKind, FrameKind, SessionControlKind } from './catalogue.ts';
export type { FrameMessages, Question, TurnError, Usage } from './schemas.ts';

/**
 * Protocol version, raised when an older peer could misread a message. Controller and runner support a difference of
 * one.
 */
export const PROTOCOL_VERSION = 4;
/** Reports whether peers that speak these versions understand each other. */
export const understand = (one: number, other: number): boolean => Math.abs(one - other) <= 1;

/** Limit of a plain message. The sender refuses a larger one and the receiver drops it. */
export const MAX_MESSAGE_BYTES = 65 * 1024 * 1024;

// ---------------------------------------------------------------------------------------------------------------- up

export type Ready = FrameMessages['ready'];
export type Bound = FrameMessages['bound'];
export type Started = FrameMessages['started'];
export type Log = FrameMessages['log'];
export type Artifacts = FrameMessages['artifacts'];
export type Result = FrameMessages['result'];
export type Outcome = Result['outcome'];
export type Pong = FrameMessages['pong'];
export type Dropped = FrameMessages['dropped'];
export type Refused = FrameMessages['refused'];
export type RefusalCode = Refused['code'];
export type Bye = FrameMessages['bye'];

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
  /**
   * The state that a `restore` will bring; a turn before it is refused. Absent: the session has no state yet. `sealedWith`: the key
   * that opens it, where that is not `state.key`; runners of protocols before RESEALS_SINCE do not know it.
   */
  restores?: { digest: string; incarnation: number; seq: number; sealedWith?: { keyId: string; key: string } };
  /**
   * Storage of the state directory, and the maximum size of its archive, plain and packed. Absent: stored up to the usual
   * limits.
   */
  persistence?: { state: boolean; maxStateBytes?: number; maxPackedBytes?: number };
  /**
   * Limits of what a turn leaves in BERTH_OUTPUT_DIR. Undefined: the controller takes no artifacts, and there is no such
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
  /** True for a session that builds an environment: nobody may work inside it. */
  builds?: true;
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
  /** Number of values hidden in what the turn returned in earlier incarnations. Default: 0. */
  redactions?: number;
}

export interface CancelTurn {
  turn: string;
  outcome: 'Cancelled' | 'TimedOut';
  /** Reason of the cancellation; absent for a person's request and for the turn's own timeout. */
  reason?: 'LifetimeExceeded';
}

/** Fields of each control line of the catalogue. */
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

export type Control = { [K in ControlKind]: ControlOf<K> }[ControlKind];
export interface ControlOf<K extends ControlKind> {
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
