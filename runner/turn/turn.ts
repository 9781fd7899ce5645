import type { Decided, Question, Result, ResumeTurn, Started, StartTurn, Usage } from '../../core/frames/messages.ts';
import { formatDuration } from '../../core/resources/duration.ts';
import { MAX_LEFT_RUNNING } from '../../core/resources/limits.ts';
import { turnError } from '../../core/result/conclude.ts';
import type { Envelope } from '../../core/result/envelope.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import type { Completion, Driver, StopReason, TurnRequest } from '../drivers/driver.ts';
import { failedBy } from '../drivers/failed.ts';
import type { Meter } from '../limits/meter.ts';
import type { Unstopped } from '../process/contained.ts';
import { errorCode } from '../system/errors.ts';
import { TurnLog, type WrittenText } from '../text/log.ts';
import type { AgentEvents } from './agent-events.ts';
import { type FrameSurroundings, type KnownState, TurnFrames } from './frames.ts';
import { Questions } from './questions.ts';
import { StallWatch } from './stall.ts';
import { TimeLimit } from './time-limit.ts';
import { unstoppedLine } from './unstopped.ts';

/** Time from SIGTERM to SIGKILL when a turn is cancelled or runs too long, milliseconds. */
export const STOP_GRACE_MS = 5000;

/** Part of the binding that turns need. */
export interface TurnSurroundings extends FrameSurroundings {
  driver: Driver;
  meter: Meter;
  events: AgentEvents;
  unpackFiles: (archives: readonly Buffer[]) => Promise<void>;
  unpackEnvironment: (archive: { packed: Buffer; digest: string }) => Promise<void>;
}

/** Key of a segment. An attempt at a turn consists of segments: one up to its first question, and one from each decision on. */
export function segmentOf(message: StartTurn | ResumeTurn): string {
  return [message.turn, message.attempt, 'approval' in message ? message.approval.requestId : ''].join(' ');
}

/** A segment of an attempt at a turn, from its control line to the frame that ends it. Each segment has its own process. */
export class TurnRun {
  readonly message: StartTurn | ResumeTurn;
  phase: 'Running' | 'Collecting' | 'Finished' = 'Running';
  started: Started | undefined;
  /** Monotonic milliseconds. */
  startedAt = 0;
  /** Monotonic milliseconds. */
  lastActivity: number;
  /** Range of its frames that are kept until they are acknowledged; set once it is finished. */
  frames: { first: number; last: number } | undefined;
  /** True if it ended with a question: the turn continues with the decision. */
  asked = false;
  /**
   * True if its process was stopped during the wait for a decision: no frame is sent, and the turn continues in another
   * process.
   */
  parked = false;
  /** Text that it wrote; set once it is finished. */
  written: WrittenText | undefined;
  readonly #surroundings: TurnSurroundings;
  readonly #frames: TurnFrames;
  readonly #abort = new AbortController();
  readonly #limit: TimeLimit;
  readonly #stall: StallWatch;
  readonly #questions: Questions;
  readonly #log: TurnLog;
  #given: Envelope | undefined;
  /** Number of values hidden in what the turn has returned, its earlier segments included. */
  #redactions: number;
  /** True while a process waits for a decision. */
  #waiting = false;

  constructor(message: StartTurn | ResumeTurn, surroundings: TurnSurroundings, known: KnownState) {
    this.message = message;
    this.lastActivity = surroundings.clock.monotonic();
    this.#surroundings = surroundings;
    this.#frames = new TurnFrames(message, surroundings, known);
    const { clock, secrets, podText } = surroundings;
    this.#redactions = ('approval' in message && message.redactions) || 0;
    const ranMs = 'approval' in message ? message.ranMs : 0;
    this.#limit = new TimeLimit(clock, message.timeoutMs, ranMs, () => this.stop(timedOut(message.timeoutMs)));
    const { stallMs } = message;
    this.#stall = new StallWatch({
      clock,
      stallMs,
      lastActivity: () => this.lastActivity,
      onStall: () => this.stop(stalled(stallMs ?? 0)),
    });
    this.#log = new TurnLog(secrets, podText);
    this.#questions = new Questions({
      newId: () => this.#newId(),
      ask: (id, question) => this.#ask(id, question),
      onWaiting: (waiting) => {
        this.#waiting = waiting;
        if (waiting) this.#timeStands();
        else if (this.started && this.phase === 'Running') this.#timeRuns();
      },
    });
  }

  #timeRuns(): void {
    this.#limit.start();
    this.#stall.start();
  }

  #timeStands(): void {
    this.#limit.pause();
    this.#stall.pause();
  }

  /** True while it waits for a decision and the controller knows that. */
  get waits(): boolean {
    return this.#questions.open !== undefined;
  }

  /** Usage so far. */
  get usage(): Usage {
    return { wallMs: this.#limit.ranMs, ...this.#surroundings.meter.read() };
  }

  /** Id of the request whose decision the agent has had last. */
  get lastDecided(): string | undefined {
    return this.#questions.lastDecided ?? ('approval' in this.message ? this.message.approval.requestId : undefined);
  }

  /** Sends a question of the running process to a person. Rejects with an UnansweredError. */
  ask(question: Question, gone: AbortSignal): Promise<Decided> {
    this.lastActivity = this.#surroundings.clock.monotonic();
    return this.#questions.ask(question, gone);
  }

  /** Takes a decision; reports whether it is, or was, for a request of the running process. */
  decide(decided: Decided): boolean {
    return this.#questions.decide(decided);
  }

  /** Sets the result, which wins over printed output. The last call counts. */
  give(result: Envelope): void {
    this.lastActivity = this.#surroundings.clock.monotonic();
    this.#given = result;
  }

  /**
   * Writes an event of the agent as a line of the readable text. Throws when the event is too large or nested too deep.
   */
  event(event: unknown): void {
    this.lastActivity = this.#surroundings.clock.monotonic();
    const at = this.#time();
    const { line, redactions } = this.#surroundings.events.line(event, this.message.name, at);
    this.#redactions += redactions;
    this.#log.event(line);
  }

  /** Stops the process that waits for a decision; another process gets the decision in its request. */
  park(graceMs: number): void {
    if (this.#abort.signal.aborted) return;
    this.parked = true;
    this.stop({ outcome: 'Cancelled', error: { code: 'Suspended', message: 'the session is suspended' }, graceMs });
  }

  /** Stops the agent. Only the first reason counts. */
  stop(reason: StopReason): void {
    if (!this.#abort.signal.aborted) this.#abort.abort(reason);
  }

  /**
   * Runs the agent, then sends log, state and result. `before`: text that an earlier segment of the turn wrote here.
   * Rejects only when the result cannot be sent.
   */
  async run(restored: TurnRequest['restored'], before: WrittenText | undefined): Promise<void> {
    const { clock, secrets } = this.#surroundings;
    this.#log.goOn(before);
    this.#surroundings.meter.begin();
    const startedAt = this.#time();
    const { asks, redactions: inResult = 0, ...completion } = await this.#complete(restored, before === undefined);
    this.#redactions += inResult;
    const { usage } = this;
    // A request that is being sent comes before the end.
    await this.#questions.end();
    const finishedAt = this.#time();
    this.phase = 'Collecting';
    const first = this.#frames.next;
    if (this.parked) {
      this.written = this.#log.close();
      this.phase = 'Finished';
      return;
    }
    const { sent, problem, isQuestion, left } = await this.#sendFiles(asks !== undefined);
    this.#redactions += left?.redactions ?? 0;
    this.lastActivity = clock.monotonic();
    this.phase = 'Finished';
    if (asks && isQuestion) {
      const last = this.#sendRequest('Ended', this.#newId(), asks, sent);
      this.asked = true;
      this.frames = { first, last };
      return;
    }
    let ended: Omit<Completion, 'asks' | 'redactions'> = completion;
    for (const each of [problem, left?.problem]) if (each) ended = { ...ended, ...withProblem(ended, each, secrets) };
    const last = this.#frames.result({
      ...ended,
      ...(this.#redactions > 0 && { redactions: this.#redactions }),
      leftRunning: completion.leftRunning.slice(0, MAX_LEFT_RUNNING),
      startedAt: this.#startedAt ?? startedAt,
      finishedAt,
      usage,
      ...sent,
      ...(left?.artifactsSeq !== undefined && { artifactsSeq: left.artifactsSeq }),
    });
    this.frames = { first, last };
  }

  /**
   * Sends the log, the state and the artifacts as they are at one moment: processes that the turn left running stand still. A turn that
   * ends with a question has no artifacts yet.
   */
  #sendFiles(asks: boolean) {
    return this.#surroundings.meter.whileHeld(async (unstopped) => {
      this.#reportUnstopped(unstopped);
      this.written = this.#log.close();
      const logSeq = this.#frames.log(this.written);
      const { state, problem } = await this.#frames.state();
      const sent = { state, ...(logSeq !== undefined && { logSeq }) };
      const isQuestion = asks && !problem;
      return { sent, problem, isQuestion, left: isQuestion ? undefined : await this.#frames.artifacts() };
    });
  }

  #reportUnstopped(unstopped: Unstopped): void {
    const line = unstoppedLine(unstopped, this.#surroundings.secrets);
    if (line) this.#log.lines(line);
  }

  /** Sends the current state, as it is at one moment, then the request. */
  async #ask(id: string, question: Question): Promise<void> {
    const { state, problem } = await this.#surroundings.meter.whileHeld((unstopped) => {
      this.#reportUnstopped(unstopped);
      return this.#frames.state();
    });
    if (problem) throw problem;
    this.#sendRequest('Alive', id, question, { state });
  }

  #sendRequest(
    process: 'Ended' | 'Alive',
    id: string,
    { redactions: inQuestion = 0, ...question }: Question,
    sent: { state: Result['state']; logSeq?: number },
  ): number {
    this.#redactions += inQuestion;
    const redactions = this.#redactions > 0 && { redactions: this.#redactions };
    const at = this.#time();
    const { ranMs } = this.#limit;
    return this.#frames.request(
      id,
      { ...question, ...redactions },
      { process, at, startedAt: this.#startedAt ?? at, ranMs, ...sent },
    );
  }

  #newId(): string {
    return this.#surroundings.random.bytes(8).toString('hex');
  }

  /** Start time of the whole turn. */
  get #startedAt(): string | undefined {
    return ('approval' in this.message ? this.message.startedAt : undefined) ?? this.started?.at;
  }

  async #complete(restored: TurnRequest['restored'], isFirstHere: boolean): Promise<Completion> {
    const { driver, clock, secrets, output } = this.#surroundings;
    const log = this.#log;
    const approval = 'approval' in this.message ? this.message.approval : undefined;
    try {
      // A process that continues with a decision finds the files of the process before it.
      if (isFirstHere) output?.empty();
      return await driver.run(
        { turn: this.message, restored, approval },
        {
          log,
          signal: this.#abort.signal,
          started: (pid) => {
            const { turn, attempt } = this.message;
            this.started = { turn, attempt, at: this.#time(), pid };
            this.startedAt = clock.monotonic();
            this.sayStarted();
            // A process may have asked before this was known.
            if (!this.#waiting) this.#timeRuns();
          },
          active: () => {
            this.lastActivity = clock.monotonic();
          },
          collecting: () => {
            this.phase = 'Collecting';
            this.#timeStands();
          },
          given: () => this.#given,
          event: (event) => {
            try {
              this.event(event);
            } catch (error) {
              log.lines(`[berth: an event is left out: ${(error as Error).message}]\n`);
            }
          },
        },
      );
    } catch (error) {
      if (error instanceof TurnFailure) return failedBy(error, secrets);
      const message = `the runner failed: ${errorCode(error)}`;
      return { outcome: 'Failed', error: turnError('InternalError', message, secrets), leftRunning: [] };
    } finally {
      this.#timeStands();
    }
  }

  /** Sends `started`, as often as asked, but not before the agent's process runs. */
  sayStarted(): void {
    if (this.started) this.#frames.started(this.started);
  }

  #time(): string {
    return new Date(this.#surroundings.clock.now()).toISOString();
  }
}

function timedOut(timeoutMs: number): StopReason {
  return {
    outcome: 'TimedOut',
    error: {
      code: 'TurnTimedOut',
      message: `the turn ran longer than its timeout of ${formatDuration(timeoutMs)} and was stopped`,
    },
    graceMs: STOP_GRACE_MS,
  };
}

function stalled(stallMs: number): StopReason {
  const message = `the turn wrote nothing and told nothing for ${formatDuration(stallMs)} and was stopped`;
  return { outcome: 'Failed', error: { code: 'Stalled', message }, graceMs: STOP_GRACE_MS };
}

/**
 * Adds the problem to a completion: a turn whose state or artifacts are not stored has not succeeded. A turn that failed
 * anyway keeps its own reason.
 */
function withProblem(completion: Completion, problem: TurnFailure, secrets: Hidden) {
  if (completion.outcome === 'Succeeded') {
    return { outcome: 'Failed' as const, error: turnError(problem.code, problem.message, secrets) };
  }
  const { code, message } = completion.error ?? { code: problem.code, message: '' };
  return { error: turnError(code, `${message}\n${problem.message}`, secrets) };
}
