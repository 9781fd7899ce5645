const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** A duration as Go writes it: `90s`, `1h30m`, `500ms`. */
export const DURATION_PATTERN = '^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$';

/**
 * Parses a duration such as `1h30m` to milliseconds. Throws a RangeError that shows the text when it is not a duration.
 */
export function parseDuration(text: string): number {
  if (!new RegExp(DURATION_PATTERN).test(text)) {
    throw new RangeError(`"${text}" is not a duration; write for example 90s, 30m or 1h30m`);
  }
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)/g)) {
    total += Number(amount) * (UNITS[unit as string] as number);
  }
  return total;
}

/** Formats a duration for people: `1.2s`, `3m5s`, `2h`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(1))}s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.floor((ms % 60_000) / 1000);
  if (minutes < 60) return `${minutes}m${seconds ? `${seconds}s` : ''}`;
  return `${Math.floor(minutes / 60)}h${minutes % 60 ? `${minutes % 60}m` : ''}`;
}
