/** Formats a duration as kubectl's AGE columns do: two units at most, the smaller one only for short durations. */
export function humanDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (hours < 192) return two(days, 'd', hours % 24, 'h');
  if (days < 730) return `${days}d`;
  const years = Math.floor(days / 365);
  return years < 8 ? two(years, 'y', days % 365, 'd') : `${years}y`;
}

const two = (a: number, unit: string, b: number, smaller: string) =>
  b === 0 ? `${a}${unit}` : `${a}${unit}${b}${smaller}`;

/** Returns the age of a time in metadata. */
export function age(time: unknown, now: number): string {
  const since = typeof time === 'string' ? Date.parse(time) : Number.NaN;
  return Number.isNaN(since) ? '<unknown>' : humanDuration(now - since);
}
