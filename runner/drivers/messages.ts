import { describe, isObject } from '../../core/result/describe.ts';
import type { Envelope } from '../../core/result/envelope.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { checkDepth, ENVELOPE_DEPTH } from '../../core/result/output.ts';

const RFC_3339 = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d/;

/** A server's answer to one request. */
export interface Response {
  id: string;
  /** Result of the answer, or the reason why it is not valid. */
  answer: Envelope | TurnFailure;
}

/**
 * Parses `{"type":"response", "id", "timestamp", "result" | "error"}`, with `turn_count` and `metadata` as in an
 * envelope. Throws a TurnFailure when the response does not name its request.
 */
export function parseResponse(message: Record<string, unknown>): Response {
  const { id } = message;
  if (typeof id !== 'string' || id === '') throw wrong(`"id" must be the request's; it is ${describe(id)}`);
  try {
    return { id, answer: answerOf(message) };
  } catch (error) {
    if (error instanceof TurnFailure) return { id, answer: error };
    throw error;
  }
}

function answerOf(message: Record<string, unknown>): Envelope {
  checkDepth(message, 'the response of the agent', ENVELOPE_DEPTH);
  const { timestamp, error, turn_count: turnCount, metadata } = message;
  if (typeof timestamp !== 'string' || !RFC_3339.test(timestamp) || Number.isNaN(Date.parse(timestamp))) {
    const got = typeof timestamp === 'string' ? 'another string' : describe(timestamp);
    throw wrong(`"timestamp" must be a time such as 2026-01-01T12:00:00Z; it is ${got}`);
  }
  const hasError = error !== undefined && error !== null;
  const hasResult = Object.hasOwn(message, 'result');
  if (hasError && hasResult && message.result !== null) throw wrong('it has both "result" and "error"; one is allowed');
  if (!hasError && !hasResult) throw wrong('it has neither "result" nor "error"');
  if (turnCount !== undefined && !(Number.isSafeInteger(turnCount) && (turnCount as number) >= 0)) {
    throw wrong(`"turn_count" must be a whole number from 0; it is ${describe(turnCount)}`);
  }
  if (metadata !== undefined && !isObject(metadata)) {
    throw wrong(`"metadata" must be an object; it is ${describe(metadata)}`);
  }
  return {
    ...(hasError ? { status: 'error', error: errorText(error) } : { status: 'success', output: message.result }),
    ...(turnCount !== undefined && { turnCount: turnCount as number }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** Returns the text of an error: a string, or an object with a `message` and perhaps a `code`. */
function errorText(error: unknown): string {
  if (typeof error === 'string') return error;
  if (isObject(error) && typeof error.message === 'string') {
    const { code, message } = error;
    return typeof code === 'string' || typeof code === 'number' ? `${code}: ${message}` : message;
  }
  throw wrong(`"error" must be a string, or an object with a string "message"; it is ${describe(error)}`);
}

/** Reports whether text that is not valid JSON was meant as the response to request `id`, or names no request. */
export function isBrokenResponse(text: string, id: string): boolean {
  return /["']type["']\s*:\s*["']response["']/.test(text) && (text.includes(id) || !/["']id["']\s*:/.test(text));
}

export function wrong(problem: string): TurnFailure {
  return new TurnFailure('InvalidResult', `the response of the agent: ${problem}`);
}
