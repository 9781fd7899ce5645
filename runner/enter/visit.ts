import type { EnterFrame, FrameKind } from '../../core/enter/frames.ts';
import type { EnterRefusal, Hello } from '../../core/enter/hello.ts';

/** A client's connection by way of a helper, whose hello names this session and incarnation. */
export interface Visit {
  readonly hello: Hello;
  /** Sends a frame; false asks to wait for `onDrain`. Without effect once it is closed. */
  send(kind: FrameKind, ...parts: readonly Buffer[]): boolean;
  /** Calls back for each frame after the hello, heartbeats excepted. */
  onFrame(fn: (frame: EnterFrame) => void): void;
  /** Calls back whenever more can be sent; a later function takes the place of an earlier one. */
  onDrain(fn: () => void): void;
  /** Takes no more frames from the client until `resume`. */
  pause(): void;
  resume(): void;
  /** Refuses, and closes. */
  refuse(refusal: EnterRefusal): void;
  /** Closes once what was sent is on its way. */
  close(): void;
  /** Aborts when the connection is over, whoever ended it. */
  readonly gone: AbortSignal;
}
