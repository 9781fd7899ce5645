import type { Question } from '../frames/messages.ts';
import type { Hidden } from '../text/hidden.ts';
import { describe, isObject } from './describe.ts';
import { TurnFailure } from './failure.ts';
import { ENVELOPE_DEPTH, MAX_METADATA_BYTES, parseJson } from './output.ts';
import { questionOf } from './question.ts';

/** The agent's report on its turn. */
export interface Envelope {
  status: 'success' | 'error' | 'approval';
  output?: unknown;
  error?: string;
  turnCount?: number;
  metadata?: Record<string, unknown>;
  /** The question, if the status is `approval`. */
  question?: Question;
}

/** Envelope as error texts show it. */
export const ENVELOPE_EXAMPLE = '{"status": "success", "output": "hello"}';

/** Throws a TurnFailure naming the field that is wrong. `where` names the place of the envelope. */
export function parseEnvelope(text: string, where: string, secrets: Hidden): Envelope {
  const raw = parseJson(text, where, secrets, { levels: ENVELOPE_DEPTH });
  if (!isObject(raw)) throw invalid(where, `must be an object; it is ${describe(raw)}`);
  const { status, output, error, turn_count: turnCount, metadata } = raw;
  if (status !== 'success' && status !== 'error' && status !== 'approval') {
    const got = typeof status === 'string' && /^\w{1,20}$/.test(status) ? `"${status}"` : describe(status);
    const example = status === undefined ? `. Print, for example, ${ENVELOPE_EXAMPLE}` : '';
    throw invalid(where, `"status" must be "success", "error" or "approval"; it is ${got}${example}`);
  }
  if (!isAbsent(error) && typeof error !== 'string') {
    throw invalid(where, `"error" must be a string; it is ${describe(error)}`);
  }
  if (!isAbsent(turnCount) && !(Number.isSafeInteger(turnCount) && (turnCount as number) >= 0)) {
    throw invalid(where, `"turn_count" must be a whole number from 0; it is ${describe(turnCount)}`);
  }
  if (!isAbsent(metadata) && !isObject(metadata)) {
    throw invalid(where, `"metadata" must be an object; it is ${describe(metadata)}`);
  }
  const question = status === 'approval' ? questionOf(raw, secrets) : undefined;
  if (question && 'problem' in question) throw invalid(where, question.problem);
  return {
    status,
    ...(question && { question }),
    ...(output !== undefined && { output }),
    ...(!isAbsent(error) && { error: error as string }),
    ...(!isAbsent(turnCount) && { turnCount: turnCount as number }),
    ...(!isAbsent(metadata) && { metadata: metadata as Record<string, unknown> }),
  };
}

/** Throws a TurnFailure when the metadata is too large to be stored. */
export function checkMetadataSize(metadata: Record<string, unknown> | undefined): void {
  const bytes = metadata ? Buffer.byteLength(JSON.stringify(metadata)) : 0;
  if (bytes > MAX_METADATA_BYTES) {
    throw new TurnFailure(
      'ResultRejected',
      `"metadata" has ${bytes} bytes as JSON; at most ${MAX_METADATA_BYTES} can be stored`,
    );
  }
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function invalid(where: string, problem: string): TurnFailure {
  return new TurnFailure('InvalidResult', `${where}: ${problem}`);
}
