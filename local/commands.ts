/** What the program `local` does: up, down, status. */

import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, type ClusterDeps, MARKER_HOME } from './cluster.ts';
import type { LocalConfig } from './config.ts';
import { type ClusterState, Home } from './home.ts';
import { MARKER_ROOT } from './kubelet/container.ts';
import { type Belonging, killBelonging, processTable, sendSignal } from './kubelet/processes.ts';

/** Limit for a start in the background, milliseconds. */
const UP_MS = 60_000;
/** Limit for a stop in good order, milliseconds. */
const DOWN_MS = 30_000;
const POLL_MS = 20;

/** The cluster did not start or did not stop; the text says why. */
export class LocalError extends Error {
  readonly code = 'LocalError';
}

/** Children of a cluster in this home: its programs and its pods. */
function belongingTo(home: Home): Belonging {
  return {
    leaders: [],
    marked: (environment) =>
      environment.get(MARKER_HOME) === home.path ||
      environment.get(MARKER_ROOT)?.startsWith(`${join(home.path, 'pods')}/`) === true,
  };
}

/** Ends programs and pods of a cluster whose own process is gone. */
async function endLeftovers(home: Home): Promise<void> {
  const left = await killBelonging(processTable, belongingTo(home));
  if (left.length > 0) throw new LocalError(`processes of an earlier cluster cannot be ended: pids ${left.join(', ')}`);
}

export interface UpOptions {
  config: LocalConfig;
  deps: ClusterDeps;
  /** Ends the cluster in good order. */
  signal: AbortSignal;
  onReady(state: ClusterState): void;
}

/** Runs a cluster until the signal aborts. Rejects with `AlreadyRunning`, or with what kept it from starting. */
export async function up({ config, deps, signal, onReady }: UpOptions): Promise<void> {
  const home = new Home(config.home);
  home.make();
  home.lock();
  try {
    home.removeState();
    await endLeftovers(home);
    const cluster = new Cluster(home, config, deps);
    try {
      const state = await cluster.start();
      if (!signal.aborted) {
        home.writeState(state);
        onReady(state);
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      }
    } finally {
      home.removeState();
      await cluster.stop();
      await endLeftovers(home);
    }
  } finally {
    home.unlock();
  }
}

/**
 * Starts a cluster in the background and resolves when it is ready; one that already runs is as good.
 * Rejects with a `LocalError` that holds what the cluster's process said.
 */
export async function upDetached(config: LocalConfig, mainPath: string): Promise<ClusterState> {
  const home = new Home(config.home);
  home.make();
  const running = home.state();
  if (running) return running;
  const logPath = home.log('local');
  const offset = statSync(logPath, { throwIfNoEntry: false })?.size ?? 0;
  const log = openSync(logPath, 'a', 0o600);
  const args = [mainPath, 'up', '--port', String(config.port), '--api-port', String(config.apiPort)];
  const child = spawn(process.execPath, [...process.execArgv, ...args], {
    env: { ...process.env, BERTH_HOME: config.home },
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  let ended: string | undefined;
  child.on('error', (error) => {
    ended = error.message;
  });
  child.on('exit', (code, signal) => {
    ended = signal ? `signal ${signal}` : `exit code ${code}`;
  });
  const deadline = performance.now() + UP_MS;
  for (;;) {
    const state = home.state();
    if (state) {
      child.unref();
      return state;
    }
    const said = () => readFileSync(logPath).subarray(offset).toString('utf8').trim().slice(-4_000);
    if (ended !== undefined) throw new LocalError(`the cluster did not start (${ended}):\n${said()}`);
    if (performance.now() > deadline) {
      sendSignal(child.pid!, 'SIGTERM');
      throw new LocalError(`the cluster was not ready within ${UP_MS / 1000} s, see ${logPath}:\n${said()}`);
    }
    await sleep(POLL_MS);
  }
}

/**
 * Stops the cluster of this home and waits until it is gone; true when one ran. What does not stop in time is killed,
 * and so is what a cluster that was killed left running.
 */
export async function down(config: LocalConfig): Promise<boolean> {
  const home = new Home(config.home);
  const pid = home.runner();
  if (pid !== undefined) {
    sendSignal(pid, 'SIGTERM');
    const deadline = performance.now() + DOWN_MS;
    while (home.runner() === pid) {
      if (performance.now() > deadline) sendSignal(pid, 'SIGKILL');
      await sleep(POLL_MS);
    }
  }
  await endLeftovers(home);
  return pid !== undefined;
}

/** The cluster of this home if it is ready. */
export function status(config: LocalConfig): ClusterState | undefined {
  return new Home(config.home).state();
}
