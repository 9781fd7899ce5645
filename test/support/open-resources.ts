import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 10;

/** Types of what keeps this process alive: servers, connections, timers, children. */
export function openResources(): string[] {
  return process.getActiveResourcesInfo();
}

/**
 * Resolves to the resources besides `before` that are still open after at most `ms` milliseconds. Some close by
 * themselves, such as idle connections.
 */
export async function leftOpen(before: readonly string[], ms: number): Promise<string[]> {
  for (const until = performance.now() + ms; ; await sleep(POLL_MS)) {
    const left = openResources();
    for (const type of before) {
      const at = left.indexOf(type);
      if (at >= 0) left.splice(at, 1);
    }
    if (left.length === 0 || performance.now() >= until) return left;
  }
}
