import { isUtf8 } from 'node:buffer';
import { base64Forms } from '../core/text/encodings.ts';

/** Shorter texts stand everywhere: to take them out would leave nothing readable. */
const MIN_LENGTH = 8;
/** As much as a key or a small key store has: so much live text of a line without an end is held back for it. */
const MAX_BINARY_BYTES = 4096;

/**
 * What of a secret file must not show: its lines, where it is JSON the strings in it, and where it is no text its bytes in
 * base64 and hexadecimal. Line by line: a secret of many lines would hold back the live text.
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
    // It is of another format.
  }
  const binary = isUtf8(content) || content.length > MAX_BINARY_BYTES ? [] : writtenOut(content);
  return [...found, ...binary];
}

/** The first and last line of a key in PEM: no secret, and in the source of every program that reads keys. */
const ARMOR = /^-----(?:BEGIN|END) [A-Z0-9 ]+-----$/;

/** The lines of a text that are long enough to be looked for, without the space around: so each is found indented, too. */
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
