/** Lines of a program's log for people. */

/** Characters that would act on a terminal; a stack has the tabs of its lines. */
const CONTROL = /[^\P{Cc}\t]/gu;
/** Values that need no quotes. */
const PLAIN = /^[\w./:@+-]+$/;

/**
 * Formats a line of the log, which is a JSON object with `time`, `level` and `msg`: `2026-01-02T03:04:05.678Z INFO  turn committed
 * session=notes attempt=1`. The stack of `err` follows, indented. No value can look like a line of its own.
 */
export function textLine(json: string): string {
  const { time, level, msg, err, ...fields } = JSON.parse(json) as Record<string, unknown> & {
    time: string;
    level: string;
    msg?: string;
  };
  const { stack, ...about } = isObject(err) ? err : { stack: undefined };
  const facts = Object.entries(err === undefined ? fields : { ...fields, err: isObject(err) ? about : err });
  const words = [time, level.toUpperCase().padEnd(5), ...(msg === undefined ? [] : [msg])];
  const line = [...words, ...facts.map(([name, value]) => `${name}=${shown(value)}`)].join(' ');
  const lines = stack === undefined ? [line] : [line, ...String(stack).replaceAll('\r', '').split('\n')];
  return `${lines.map((text) => text.replaceAll(CONTROL, escaped)).join('\n    ')}\n`;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

function shown(value: unknown): string {
  return typeof value === 'string' && PLAIN.test(value) ? value : JSON.stringify(value);
}
