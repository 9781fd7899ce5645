import type { Reason } from '../resources/reasons.ts';

/** Reason why a turn did not succeed, in words for the person who sent it. */
export class TurnFailure extends Error {
  readonly code: Reason;
  /** Sentence that says what to do, for a program that has not failed itself. */
  readonly advice: string | undefined;
  constructor(code: Reason, message: string, advice?: string) {
    super(message);
    this.name = 'TurnFailure';
    this.code = code;
    this.advice = advice;
  }
}
