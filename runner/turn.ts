import type { Log, Result, Started, StartTurn } from '../core/frames/messages.ts';
import { sealState } from '../core/frames/seal.ts';
import type { FrameSender } from '../core/frames/sender.ts';
import type { Clock, Random } from '../core/runtime.ts';
import { turnError } from './drivers/conclude.ts';
import type { Completion, Driver, StopReason } from './drivers/driver.ts';
import { errorCode, TurnFailure } from './errors.ts';
import type { StateDirectory } from './state/archive.ts';
import { TurnLog } from './text/log.ts';

/** From SIGTERM to SIGKILL when a turn is cancelled or runs too long. */
export const STOP_GRACE_MS = 5000;
/** A timer of more milliseconds would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** What the runner is bound to, as far as its turns need it. */
export interface TurnSurroundings {
  driver: Driver;
  sender: FrameSender;
  state: StateDirectory;
  stateKey: { session: string; keyId: string; key: Buffer };
  secrets: readonly string[];
  /** Takes readable, redacted text. */
  write: (text: string) => void;
  clock: Clock;
  random: Random;
}

/** The state that the controller has, or is about to have. */
export interface KnownState {
  /** Of the last one sent or restored; of an empty directory at first. */
  digest: string;
}

/** One attempt at a turn, from its line to its result frame. */
export class TurnRun {
  readonly message: StartTurn;
  phase: 'Running' | 'Collecting' | 'Finished' = 'Running';
  started: Started | undefined;
  lastActivity: number;
  /** Its frames that are kept until they are acknowledged; set once it is finished. */
  frames: { first: number; last: number } | undefined;
  readonly #surroundings: TurnSurroundings;
  readonly #known: KnownState;
  readonly #abort = new AbortController();

  constructor(message: StartTurn, surroundings: TurnSurroundings, known: KnownState) {
    this.message = message;
    this.lastActivity = surroundings.clock.now();
    this.#surroundings = surroundings;
    this.#known = known;
  }

  /** Stops the agent. Only the first reason counts. */
  stop(reason: StopReason): void {
    if (!this.#abort.signal.aborted) this.#abort.abort(reason);
  }

  /** Runs the agent, then sends log, state and result. Rejects only when the result cannot be sent. */
  async run(restored: { workspaceReset: boolean; note: string } | undefined): Promise<void> {
    const { clock, sender, secrets, write } = this.#surroundings;
    const log = new TurnLog(secrets, write);
    const startedAt = this.#time();
    const completion = await this.#complete(restored, log);
    const finishedAt = this.#time();
    this.phase = 'Collecting';
    const first = sender.lastSeq + 1;
    const { turn, attempt } = this.message;
    const logSeq = this.#sendLog({ turn, attempt, ...log.close() });
    const { state, problem } = await this.#sendState();
    this.lastActivity = clock.now();
    const result: Result = {
      turn,
      attempt,
      ...completion,
      ...(problem && withProblem(completion, problem, secrets)),
      startedAt: this.started?.at ?? startedAt,
      finishedAt,
      state,
      ...(logSeq !== undefined && { logSeq }),
    };
    this.phase = 'Finished';
    this.frames = { first, last: this.#sendResult(result) };
  }

  async #complete(restored: { workspaceReset: boolean; note: string } | undefined, log: TurnLog): Promise<Completion> {
    const { driver, clock, secrets } = this.#surroundings;
    let cancelTimeout = () => {};
    try {
      return await driver.run(
        { turn: this.message, restored },
        {
          log,
          signal: this.#abort.signal,
          started: (pid) => {
            const { turn, attempt, timeoutMs } = this.message;
            this.started = { turn, attempt, at: this.#time(), pid };
            this.sayStarted();
            cancelTimeout = clock.setTimer(Math.min(timeoutMs, MAX_TIMER_MS), () => this.stop(timedOut(timeoutMs)));
          },
          active: () => {
            this.lastActivity = clock.now();
          },
          collecting: () => {
            this.phase = 'Collecting';
          },
        },
      );
    } catch (error) {
      const message = `the runner failed: ${errorCode(error)}`;
      return { outcome: 'Failed', error: turnError('InternalError', message, secrets), leftRunning: [] };
    } finally {
      cancelTimeout();
    }
  }

  /** Sends `started`, as often as asked. Nothing before the agent's process runs. */
  sayStarted(): void {
    if (this.started) this.#surroundings.sender.send('started', this.started);
  }

  /** undefined when the turn wrote nothing, or more than can wait for acknowledgement. */
  #sendLog(log: Log): number | undefined {
    if (log.bytes === 0) return undefined;
    try {
      return this.#surroundings.sender.send('log', log);
    } catch {
      return undefined;
    }
  }

  /** The state that goes with the result, or why it cannot be stored. */
  async #sendState(): Promise<{ state: Result['state']; problem?: TurnFailure }> {
    try {
      return { state: await sendState(this.#surroundings, this.#known, this.message.turn) };
    } catch (error) {
      const problem =
        error instanceof TurnFailure
          ? error
          : new TurnFailure('StateNotStored', `the state could not be sent: ${errorCode(error)}`);
      return { state: 'Unchanged', problem };
    }
  }

  #sendResult(result: Result): number {
    try {
      return this.#surroundings.sender.send('result', result);
    } catch (error) {
      const { output: _output, ...rest } = result;
      const message = `the result could not be sent: ${errorCode(error)}`;
      return this.#surroundings.sender.send('result', {
        ...rest,
        outcome: 'Failed',
        error: { code: 'ResultRejected', message },
      });
    }
  }

  #time(): string {
    return new Date(this.#surroundings.clock.now()).toISOString();
  }
}

/**
 * Packs, seals and sends the state. After a turn 'Unchanged' when it is the known one; a snapshot is always sent. Throws a TurnFailure
 * or FrameError when it cannot be stored.
 */
export async function sendState(
  { state, stateKey, sender, random, write }: TurnSurroundings,
  known: KnownState,
  turn: string | undefined,
): Promise<{ seq: number; digest: string } | 'Unchanged'> {
  const { digest, bytes, packed, skipped } = await state.pack();
  if (turn !== undefined && digest === known.digest) return 'Unchanged';
  if (skipped.length) write(`[berth: not stored, as neither file nor directory nor link: ${skipped.join(', ')}]\n`);
  const { session, keyId, key } = stateKey;
  const sealed = sealState(key, packed, { session, keyId }, random);
  const seq = sender.send('state', { ...(turn && { turn }), digest, keyId, bytes }, sealed);
  // A snapshot may be taken and never stored; a turn's state is stored with its result, or the pod is given up.
  if (turn !== undefined) known.digest = digest;
  return { seq, digest };
}

function timedOut(timeoutMs: number): StopReason {
  return {
    outcome: 'TimedOut',
    error: {
      code: 'TurnTimedOut',
      message: `the turn ran longer than its time-out of ${timeoutMs} ms and was stopped`,
    },
    graceMs: STOP_GRACE_MS,
  };
}

/** A turn whose state is not stored has not succeeded; one that failed anyway keeps its own reason. */
function withProblem(completion: Completion, problem: TurnFailure, secrets: readonly string[]) {
  if (completion.outcome === 'Succeeded') {
    return { outcome: 'Failed' as const, error: turnError(problem.code, problem.message, secrets) };
  }
  const { code, message } = completion.error ?? { code: problem.code, message: '' };
  return { error: turnError(code, `${message}\n${problem.message}`, secrets) };
}
