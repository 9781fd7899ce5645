/** Starts, checks and stops a cluster in the background. */

import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { mainModule } from '../core/program/own-files.ts';
import type { LocalConfig } from './config.ts';
import { AlreadyRunning, type ClusterState, Home } from './home.ts';
import { isAlive, type ProcessIdentity, processTable, sendSignal } from './kubelet/processes.ts';
import { endLeftovers, LocalError } from './leftovers.ts';

/** Limit for a start in the background, milliseconds. */
const UP_MS = 120_000;
/** Limit for a regular stop, milliseconds. */
const DOWN_MS = 30_000;
const POLL_MS = 20;

/** Rejects a port that differs from the running cluster's; 0 is any. */
function requirePort(flag: string, port: number, url: string): void {
  if (port === 0 || url.endsWith(`:${port}`)) return;
  throw new LocalError(
    `the embedded cluster already runs, at ${url}: leave ${flag} out, or stop it first with "berth local down"`,
  );
}

/**
 * Starts a cluster in the background and resolves when it is ready. A cluster that already runs at the same ports
 * counts. Rejects with a `LocalError` that contains the output of the cluster's process.
 */
export async function upDetached(config: LocalConfig): Promise<ClusterState> {
  const home = new Home(config.home);
  home.make();
  const running = home.state();
  if (running) {
    requirePort('--port', config.port, running.url);
    requirePort('--api-port', config.apiPort, running.apiUrl);
    return running;
  }
  const logPath = home.log('local');
  const offset = statSync(logPath, { throwIfNoEntry: false })?.size ?? 0;
  const log = openSync(logPath, 'a', 0o600);
  const args = [mainModule('local'), 'up', '--port', String(config.port), '--api-port', String(config.apiPort)];
  const child = spawn(process.execPath, [...process.execArgv, ...args], {
    env: { ...process.env, BERTH_HOME: config.home, NODE_COMPILE_CACHE: home.cache },
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
    // The child also ends where a process that started before it has the lock.
    if (ended !== undefined && !home.runner()) throw new LocalError(`the cluster did not start (${ended}):\n${said()}`);
    if (performance.now() > deadline) {
      sendSignal(child.pid!, 'SIGTERM');
      throw new LocalError(`the cluster was not ready within ${UP_MS / 1000} s, see ${logPath}:\n${said()}`);
    }
    await sleep(POLL_MS);
  }
}

/**
 * Stops the cluster of this home and waits until it is gone; true when one ran. A cluster that does not stop in time is
 * killed. Processes that a killed cluster left running are killed too.
 */
export async function down(config: LocalConfig): Promise<boolean> {
  const home = new Home(config.home);
  let ran = false;
  for (;;) {
    const runner = home.runner();
    if (runner) {
      ran = true;
      await end(runner);
    }
    if (!existsSync(home.path)) return ran;
    try {
      await home.exclusively(() => endLeftovers(home));
      return ran;
    } catch (error) {
      // A cluster that was started meanwhile is stopped too.
      if (!(error instanceof AlreadyRunning && home.runner())) throw error;
    }
  }
}

/** Sends TERM, then KILL after a grace; resolves when the process is gone. */
async function end(runner: ProcessIdentity): Promise<void> {
  sendSignal(runner.pid, 'SIGTERM');
  const deadline = performance.now() + DOWN_MS;
  while (isAlive(processTable, runner)) {
    if (performance.now() > deadline) sendSignal(runner.pid, 'SIGKILL');
    await sleep(POLL_MS);
  }
}

/** Returns the cluster of this home if it is ready. */
export function status(config: LocalConfig): ClusterState | undefined {
  return new Home(config.home).state();
}
