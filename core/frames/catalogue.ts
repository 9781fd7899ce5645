/**
 * All messages of the pod boundary, one row each: what follows from a message's kind alone. `since`: the first protocol version
 * that has it. A message that the partner's version does not have is not sent. The compiler demands of each row its fields, a
 * handler in the program that receives it and, for a control line that older runners do not have, who needs it.
 */

/** First protocol version whose runners take a state that is sealed with another key than those to come. */
export const RESEALS_SINCE = 4;

/** Longest proof of an epoch, characters. */
export const MAX_PROOF_CHARS = 64;

interface FrameRow {
  since: number;
  /** True for a frame that the runner keeps until it is acknowledged. The others live in a ring of 1 MiB. */
  kept: boolean;
  /** Last protocol version whose runners send it. Default: this one. */
  until?: number;
  /** First protocol version whose controllers read its text from its binary part; absent: none does. */
  packedSince?: number;
}

/** Frames: from the runner to the controller, on stdout. Their fields are in `schemas.ts`. */
export const FRAMES = {
  ready: { since: 1, kept: false },
  bound: { since: 1, kept: false },
  started: { since: 1, kept: false },
  log: { since: 1, kept: true, packedSince: 3 },
  state: { since: 1, kept: true },
  artifacts: { since: 3, kept: true },
  result: { since: 1, kept: true },
  approval: { since: 1, kept: true },
  event: { since: 1, until: 2, kept: false },
  pong: { since: 1, kept: false },
  dropped: { since: 1, kept: false },
  refused: { since: 1, kept: false },
  bye: { since: 1, kept: true },
} as const satisfies Record<string, FrameRow>;
export type FrameKind = keyof typeof FRAMES;

interface ControlRow {
  since: number;
}

/** Control lines: from the controller to the runner, on stdin. Their fields are in `messages.ts`. */
export const CONTROLS = {
  bind: { since: 1 },
  restore: { since: 1 },
  files: { since: 2 },
  environment: { since: 3 },
  turn: { since: 1 },
  approval: { since: 1 },
  cancel: { since: 1 },
  ack: { since: 1 },
  resend: { since: 1 },
  snapshot: { since: 1 },
  suspend: { since: 1 },
  resume: { since: 1 },
  ping: { since: 1 },
  shutdown: { since: 1 },
} as const satisfies Record<string, ControlRow>;
export type ControlKind = keyof typeof CONTROLS;
/** Control lines of a bound runner. */
export type SessionControlKind = Exclude<ControlKind, 'bind'>;
/** Control lines that some runners do not have. */
export type LaterControlKind = {
  [K in ControlKind]: (typeof CONTROLS)[K]['since'] extends 1 ? never : K;
}[ControlKind];

/** Reports whether a runner of this protocol version takes the control line. */
export const takes = (protocol: number, kind: ControlKind): boolean => protocol >= CONTROLS[kind].since;
