/** Client of Berth's HTTP API. */
export type { Approval, DecideOptions } from './approvals.ts';
export type { Artifact } from './artifacts.ts';
export { Berth, type BerthOptions, Run, type RunSpec } from './berth.ts';
export type { Clock } from './clock.ts';
export { TurnCancelled, TurnError, TurnFailed, TurnTimedOut } from './ends.ts';
export {
  BerthError,
  ConfigurationError,
  ConnectionLost,
  ContentDamaged,
  DeadlineExceeded,
  type FieldError,
  NotBerth,
  OutputTooLarge,
  ProblemError,
} from './errors.ts';
export type { FollowOptions, NamespaceStreamEvent, SessionStreamEvent } from './follow.ts';
export * as problems from './generated/problems.ts';
export type * as wire from './generated/wire.ts';
export type { Fetch } from './http.ts';
export { parseExact, stringifyExact } from './numbers.ts';
export type { CreateOptions, ListOptions } from './objects.ts';
export type { Limits, Timing } from './retry.ts';
export type { ActionOptions, Session, SessionSpec, Sessions } from './sessions.ts';
export type { TokenSource } from './token.ts';
export type { Result, ResultOptions, Turn, TurnSpec, TurnStreamEvent, Turns } from './turns.ts';
