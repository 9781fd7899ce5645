/** Sequences that only set colours and weights: `ESC [ numbers m`. */
const STYLE = String.raw`\u001b\[[0-9;]*m`;
const OTHERS = new RegExp(
  `(${STYLE})|[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]`,
  'g',
);

/**
 * Makes text of an agent safe for a terminal: it must not move the cursor, change the title or the order of letters, or
 * answer in the user's place. Such characters are shown as `\x1b` or `\u202e`. Colours stay where `style` is true.
 */
export function printable(text: string, style = false): string {
  const shown = text.replace(/\r(?=\n|$)/g, '').replace(OTHERS, (found, styled: string | undefined) => {
    if (styled !== undefined) return style ? styled : '';
    const code = found.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
  });
  return style && shown.includes('\u001b') ? `${shown}\u001b[0m` : shown;
}

/** Makes the name of a file safe for a terminal, in one line: a line feed is shown as `\x0a`, a backslash as `\\`. */
export function printableName(name: string): string {
  const escaped = name.replaceAll('\\', '\\\\').replaceAll('\u001b', '\\x1b');
  return printable(escaped.replace(/[\t\n\r]/g, (char) => `\\x0${char.charCodeAt(0).toString(16)}`));
}
