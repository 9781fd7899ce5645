import { posix } from 'node:path';

/** Reports whether a link at `path`, a path from the root, leads to a path below that root. Only its text is judged. */
export function staysInside(path: string, target: string): boolean {
  if (posix.isAbsolute(target)) return false;
  const end = posix.join(posix.dirname(path), target);
  return end !== '..' && !end.startsWith('../');
}
