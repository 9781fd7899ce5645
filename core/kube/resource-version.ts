/**
 * Compares two resourceVersions: negative when `a` is older, 0 when equal, positive when newer. Kubernetes guarantees
 * since 1.35 that they compare as decimal integers of any size. Undefined when they are something else.
 */
export function compareVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === b && a !== undefined) return 0;
  if (!isDecimal(a) || !isDecimal(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

const isDecimal = (version: string | undefined): version is string =>
  version !== undefined && /^(0|[1-9][0-9]*)$/.test(version);
