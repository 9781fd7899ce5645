/** Runs a cluster in this process. */

import { aborted } from '../core/abort.ts';
import { Cluster, type ClusterDeps } from './cluster.ts';
import type { LocalConfig } from './config.ts';
import { type ClusterState, Home } from './home.ts';
import { endLeftovers } from './leftovers.ts';
import { portsOf } from './ports.ts';

export interface UpOptions {
  config: LocalConfig;
  deps: ClusterDeps;
  /** Ends the cluster in order. */
  signal: AbortSignal;
  onReady(state: ClusterState): void;
}

/**
 * Runs a cluster until the signal aborts. Rejects with `AlreadyRunning`, or with the error that kept it from starting.
 */
export async function up({ config, deps, signal, onReady }: UpOptions): Promise<void> {
  const home = new Home(config.home);
  home.make();
  await home.lock();
  const { presence } = home;
  try {
    home.removeState();
    await endLeftovers(home);
    presence.hold();
    const cluster = new Cluster(home, config, deps);
    try {
      const state = await cluster.start(signal);
      signal.throwIfAborted();
      home.writePorts(portsOf(state));
      home.writeState(state);
      onReady(state);
      await Promise.race([aborted(signal), cluster.failed]);
    } catch (error) {
      // A stop during the start is no failure.
      if (!signal.aborted) throw error;
    } finally {
      home.removeOwnState();
      await cluster.stop();
    }
  } finally {
    presence.letGo();
    home.unlock();
  }
}
