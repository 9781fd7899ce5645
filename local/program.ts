/** A program of the cluster as a child process: started, watched, restarted when it dies, stopped. */

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { get } from 'node:http';
import { type Clock, delay, type Logger } from '../core/runtime.ts';
import { LocalError } from './leftovers.ts';

const FIRST_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 10_000;
/** Running time after which the backoff begins anew, milliseconds. */
const STEADY_MS = 60_000;
/** Time between TERM and KILL, milliseconds. */
const STOP_GRACE_MS = 10_000;
/** Limit for a program to become ready after its start, milliseconds. */
const READY_MS = 60_000;
/** Attempts with another port: a free port may be taken by the time the program listens. */
const PORTS = 5;
const POLL_MS = 10;

export interface Place {
  /** Environment variables with the address on which the program listens. */
  env: Record<string, string>;
  /** URL that answers 200 once the program serves. */
  readyUrl: string;
}

export interface ProgramSpec {
  name: string;
  /** Program and arguments. */
  argv: string[];
  env: Record<string, string | undefined>;
  logPath: string;
  /** Returns the place to listen. Called again when that port was taken. */
  place(): Promise<Place>;
  /** Prepares every start, when no earlier run of the program lives. The result is added to the environment. */
  prepare(): Promise<Record<string, string>>;
}

export class Program {
  readonly #spec: ProgramSpec;
  readonly #deps: { clock: Clock; logger: Logger };
  readonly #stopping = new AbortController();
  #child: ChildProcess | undefined;
  #place: Place = { env: {}, readyUrl: '' };
  #supervising: Promise<void> | undefined;

  constructor(spec: ProgramSpec, deps: { clock: Clock; logger: Logger }) {
    this.#spec = spec;
    this.#deps = { clock: deps.clock, logger: deps.logger.child({ program: spec.name }) };
  }

  /**
   * Starts the program and resolves when it is ready. Rejects with a `LocalError` that contains the end of its log.
   * The program is watched as soon as it is ready.
   */
  async start(): Promise<void> {
    const { logPath, name } = this.#spec;
    const offset = statSync(logPath, { throwIfNoEntry: false })?.size ?? 0;
    for (let left = PORTS; ; left--) {
      const prepared = await this.#spec.prepare();
      const { readyUrl: before } = this.#place;
      this.#place = await this.#spec.place();
      if (this.#stopping.signal.aborted) throw new LocalError(`${name} was stopped before it began`);
      const begun = statSync(logPath, { throwIfNoEntry: false })?.size ?? 0;
      const ended = untilEnd(this.#spawn(prepared));
      const settled = new AbortController();
      const problem = await Promise.race([
        this.#untilReady(this.#place.readyUrl, settled.signal),
        ended.then((how) => `ended before it was ready (${how})`),
      ]);
      settled.abort();
      if (!problem) {
        this.#supervising = this.#supervise(ended);
        return;
      }
      const said = (from: number) => readFileSync(logPath).subarray(from).toString('utf8').trim().slice(-2_000);
      const isTaken = said(begun).includes('EADDRINUSE') && this.#place.readyUrl !== before;
      if (isTaken && left > 1) {
        this.#child?.kill('SIGKILL');
        await ended;
        continue;
      }
      throw new LocalError(`${name} ${problem}; its log (${logPath}) says:\n${said(offset) || '(nothing)'}`);
    }
  }

  /** Sends TERM, then KILL after a grace. Resolves when the program is gone. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) {
      const ended = untilEnd(child);
      child.kill('SIGTERM');
      const cancel = this.#deps.clock.setTimer(STOP_GRACE_MS, () => child.kill('SIGKILL'));
      await ended;
      cancel();
    }
    await this.#supervising;
  }

  /** Resolves with undefined when it is ready, otherwise with the problem. */
  async #untilReady(url: string, signal: AbortSignal): Promise<string | undefined> {
    const { clock } = this.#deps;
    const deadline = clock.monotonic() + READY_MS;
    while (!signal.aborted && !this.#stopping.signal.aborted && clock.monotonic() < deadline) {
      if ((await statusOf(url)) === 200) return undefined;
      await delay(clock, POLL_MS, signal).catch(() => {});
    }
    return this.#stopping.signal.aborted ? 'was stopped' : `was not ready within ${READY_MS / 1_000} s`;
  }

  #spawn(prepared: Record<string, string>): ChildProcess {
    const { argv, logPath } = this.#spec;
    const env = { ...this.#spec.env, ...this.#place.env, ...prepared };
    const log = openSync(logPath, 'a', 0o600);
    try {
      // The child has a session of its own: Ctrl-C in a terminal reaches this program only, which then stops the others
      // in order.
      const child = spawn(argv[0]!, argv.slice(1), { env, stdio: ['ignore', log, log], detached: true });
      child.on('error', (error) => this.#deps.logger.error({ err: error }, 'program could not be started'));
      this.#child = child;
      return child;
    } finally {
      closeSync(log);
    }
  }

  async #supervise(first: Promise<string>): Promise<void> {
    const { clock, logger } = this.#deps;
    const { signal } = this.#stopping;
    let ended = first;
    let startedAt = clock.monotonic();
    for (let backoff = FIRST_BACKOFF_MS; ; backoff = Math.min(backoff * 2, MAX_BACKOFF_MS)) {
      const how = await ended;
      if (signal.aborted) return;
      if (clock.monotonic() - startedAt > STEADY_MS) backoff = FIRST_BACKOFF_MS;
      logger.warn({ ended: how, backoffMs: backoff }, 'program ended, starting it again');
      await delay(clock, backoff, signal).catch(() => {});
      if (signal.aborted) return;
      startedAt = clock.monotonic();
      try {
        const prepared = await this.#spec.prepare();
        if (signal.aborted) return;
        ended = untilEnd(this.#spawn(prepared));
      } catch (error) {
        logger.warn({ err: error }, 'program could not be prepared');
        ended = Promise.resolve('not prepared');
      }
    }
  }
}

/** Resolves with a text about the child's end; never rejects. */
function untilEnd(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
  });
}

/** Returns the status code of a GET; undefined when there is no answer. */
function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 1_000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(undefined));
  });
}
