import { isUtf8 } from 'node:buffer';
import { base64Forms } from '../../core/text/encodings.ts';

/** Shorter texts stand everywhere: redacting them would leave nothing readable. */
const MIN_LENGTH = 8;
/**
 * Size of a key or a small key store. Live text without a line feed is held back for up to the length of such a value.
 */
const MAX_BINARY_BYTES = 4096;

/**
 * Returns the parts of a secret file to hide: its lines, the strings in JSON, and for binary content its bytes in
 * base64 and hexadecimal. Text is hidden line by line, because a secret of many lines would hold back the live text.
 */
export function secretsIn(content: Buffer): string[] {
  const text = content.toString('utf8');
  const found = new Set(linesOf(text));
  const collect = (value: unknown) => {
    if (typeof value === 'string') for (const line of linesOf(value)) found.add(line);
    else if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) collect(item);
  };
  try {
    collect(JSON.parse(text));
  } catch {
    // The content is not JSON.
  }
  const binary = isUtf8(content) || content.length > MAX_BINARY_BYTES ? [] : writtenOut(content);
  return [...found, ...binary];
}

/**
 * Matches the first and last line of a key in PEM: they are no secret, and stand in the source of every program that
 * reads keys.
 */
const ARMOR = /^-----(?:BEGIN|END) [A-Z0-9 ]+-----$/;

/**
 * Returns the lines of a text that are long enough to be searched, without surrounding space, so that indented lines
 * are found too.
 */
export function linesOf(text: string): string[] {
  return text
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line.length >= MIN_LENGTH && !ARMOR.test(line));
}

function writtenOut(bytes: Buffer): string[] {
  const hex = bytes.toString('hex');
  return [...base64Forms(bytes), hex, hex.toUpperCase()].filter((text) => text.length >= MIN_LENGTH);
}
