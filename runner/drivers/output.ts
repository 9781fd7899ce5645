import { MAX_OUTPUT_BYTES } from '../../core/resources/limits.ts';
import { TurnFailure } from '../errors.ts';
import { redact } from '../text/redact.ts';
import { headOf } from '../text/utf8.ts';

/** JSON may be laid out widely; this much of it is read. */
export const MAX_RAW_BYTES = 2 * MAX_OUTPUT_BYTES;
export const MAX_METADATA_BYTES = 4096;
/** Deeper values break the programs that read them one after the other. */
const MAX_DEPTH = 256;
/** How much of a text that is no JSON an error quotes. */
const QUOTED_BYTES = 80;

/** A text as a JSON value. Throws a TurnFailure that says what is wrong with it. `what` names where it stood. */
export function parseJson(text: string, what: string, secrets: readonly string[]): unknown {
  if (text.trim() === '') throw new TurnFailure('InvalidResult', `${what} is empty; it must be JSON`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const where = /position \d+/.exec((error as Error).message)?.[0];
    // V8's own text quotes the input, cut anywhere: half a secret would not be recognised any more.
    const start = JSON.stringify(headOf(redact(text.trim(), secrets), QUOTED_BYTES));
    throw new TurnFailure(
      'InvalidResult',
      `${what} is not valid JSON${where ? ` at ${where}` : ''}; it begins ${start}`,
    );
  }
  if (isDeeper(value, MAX_DEPTH)) {
    throw new TurnFailure('InvalidResult', `${what} is nested deeper than ${MAX_DEPTH} levels`);
  }
  return value;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((item) => isDeeper(item, levels - 1));
}

/** The value with every string in it redacted, keys included. */
export function redactValue(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === 'string') return redact(value, secrets);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, secrets));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [redact(key, secrets), redactValue(item, secrets)]),
  );
}

/** Throws a TurnFailure when the output is larger than may be stored. */
export function checkOutputSize(output: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(output) ?? '');
  if (bytes > MAX_OUTPUT_BYTES) throw tooLarge(bytes);
}

/** `bytes` as far as they were counted. */
export function tooLarge(bytes: number): TurnFailure {
  return new TurnFailure('OutputTooLarge', `the output has ${bytes} bytes; at most ${MAX_OUTPUT_BYTES} can be stored`);
}
