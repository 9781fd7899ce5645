import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** What Node has no call for: runner/signals/signals.c. */
export interface Addon {
  /** Ignores all signals that neither Node nor the runner handles. */
  ignoreSignals(): void;
  /** Returns the pid of the process that connected this unix socket; 0 for one outside of this PID namespace. */
  peerPid(fd: number): number;
}

/**
 * Loads the addon beside the runner's own file, or where `make keeper` puts it in a checkout. Returns undefined where it cannot
 * be loaded.
 */
export function loadAddon(runnerDir: string): Addon | undefined {
  const places = [join(runnerDir, 'signals.node'), join(runnerDir, '..', 'build', 'signals.node')];
  const place = places.find((path) => existsSync(path));
  if (!place) return undefined;
  const loaded = { exports: {} };
  try {
    process.dlopen(loaded, place);
    return loaded.exports as Addon;
  } catch {
    return undefined;
  }
}
