/** A part of a long text, with the command that prints all of it. */

const LINES = 20;
const BYTES = 4096;

/** Returns the first lines of the text. */
export function firstLines(text: string, whole: string): string {
  const lines = text.trimEnd().split('\n');
  const [shown, leftOut] = part(lines, (bytes) => bytes.subarray(0, BYTES));
  return leftOut === '' ? text : [...shown, `[${leftOut} more; all: ${whole}]`].join('\n');
}

/** Returns the last lines of the text. */
export function lastLines(text: string, whole: string): string {
  const lines = text.trimEnd().split('\n').reverse();
  const [shown, leftOut] = part(lines, (bytes) => bytes.subarray(-BYTES));
  return leftOut === '' ? text : [...shown, `[${leftOut} before these; all: ${whole}]`].reverse().join('\n');
}

/** Returns the lines that have room, and the amount that has none. `cut` shortens a first line that is too long itself. */
function part(lines: string[], cut: (bytes: Buffer) => Buffer): [string[], string] {
  let bytes = 0;
  const over = lines.findIndex((line, i) => {
    bytes += Buffer.byteLength(line) + 1;
    return i === LINES || bytes > BYTES;
  });
  if (over < 0) return [lines, ''];
  const [first = ''] = lines;
  const shown = over > 0 ? lines.slice(0, over) : [cut(Buffer.from(first)).toString().replaceAll('\ufffd', '')];
  const [left, leftBytes] = [lines.length - shown.length, Buffer.byteLength(first) - BYTES];
  if (left > 0) return [shown, left === 1 ? '1 line' : `${left} lines`];
  return leftBytes > 0 ? [shown, `${leftBytes} bytes`] : [lines, ''];
}
