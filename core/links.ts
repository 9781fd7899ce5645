import { posix } from 'node:path';

/** Reports whether a link at `path` leads to a path below the root that `path` counts from, judged by its text alone. */
export function staysInside(path: string, target: string): boolean {
  if (posix.isAbsolute(target)) return false;
  const end = posix.join(posix.dirname(path), target);
  return end !== '..' && !end.startsWith('../');
}
