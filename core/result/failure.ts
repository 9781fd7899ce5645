import type { Reason } from '../resources/reasons.ts';

/** Reason why a turn did not succeed, in words for the person who sent it. */
export class TurnFailure extends Error {
  readonly code: Reason;
  constructor(code: Reason, message: string) {
    super(message);
    this.name = 'TurnFailure';
    this.code = code;
  }
}
