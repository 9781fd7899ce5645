import type { Decided, StartTurn } from '../../../core/frames/messages.ts';
import { MAX_METADATA_BYTES } from '../../../core/resources/limits.ts';
import type { Answer } from '../../../runner/agent-socket/socket.ts';
import type { Completion, Driver, TurnHooks, TurnRequest } from '../../../runner/drivers/driver.ts';
import type { Process } from '../scheduler.ts';
import type { StateContent } from './state-content.ts';

/** Ends that are no success, each with what the turn has to say of it. */
export const BAD_ENDS = {
  Error: { code: 'AgentFailed', exitCode: 0 },
  ExitCode: { code: 'AgentFailed', exitCode: 3 },
  NoResult: { code: 'MissingEnvelope', exitCode: 0 },
  InvalidResult: { code: 'InvalidResult', exitCode: 0 },
  MuchOutput: { code: 'OutputTooLarge', exitCode: 0 },
  MuchMetadata: { code: 'ResultRejected', exitCode: 0 },
} as const;

export type BadEnd = keyof typeof BAD_ENDS;

/** What the simulated agent does with a turn: the turn's input, so that a trace shows it. */
export interface Plan {
  /** From the start of its process to its first question or its end, milliseconds; absent: it never ends by itself. */
  ms?: number;
  /** Bytes of the text in its output. */
  output: number;
  /** It adds itself to the state, which then has at least this many bytes; absent: the state stays as it is. */
  state?: number;
  /** Bytes that it prints. */
  log?: number;
  /** How it ends; absent: with a result. */
  ends?: BadEnd;
  /** It ends only when it is killed. */
  stubborn?: boolean;
  /** It tells that it lives, every so many milliseconds. */
  talksMs?: number;
  /** What it asks before it ends, one after the other: as a process that waits, or by ending. */
  asks?: ('Alive' | 'Ended')[];
  /** Something that it left running touches the session so long after its end, milliseconds. */
  touchAfterMs?: number;
}

/** One start of an agent for a turn: what a result can be true of. */
export interface Run {
  turn: string;
  attempt: number;
  podUID: string;
  sessionUID: string;
  incarnation: number;
  /** The request whose decision it was started with. */
  decision: string | undefined;
  /** Whether it was told that it is restored. */
  restored: boolean;
  /** How long its runner was told that the turn may run and be silent. */
  timeoutMs: number;
  stallMs: number;
  /** In a pod without a runner. */
  isPlain: boolean;
  plan: Plan;
  startedAt: number;
  /** How long it ran by the clock of its turn, which stands while it waits for a decision; milliseconds. */
  ranMs: number;
  /** What it printed. */
  printed: string;
  /** Contents of the agent's files when it started, one for each ConfigMap. */
  files: readonly string[];
  /** Digest of the state directory when the agent started. */
  from: string;
  /** Digests of the state directory at each question. */
  asked: string[];
  /** What it came to; absent while it runs, and for ever where its pod was killed. */
  end?: RunEnd;
}

export interface RunEnd extends Omit<Completion, 'outcome' | 'error' | 'asks'> {
  outcome: Completion['outcome'] | 'Asked';
  /** Absent with a success. */
  code?: string;
  /** Message of the runner about the failure. */
  message?: string;
  to: string;
  stateBytes: number;
  at: number;
}

export interface AgentOptions {
  process: Process;
  content: StateContent;
  startMs: () => number;
  /** What `BERTH_SOCKET` leads to. */
  socket: Answer;
  /** An agent's process has started for the turn. */
  begin(request: TurnRequest): Run;
  /** It was told a decision. */
  told(run: Run, decided: Decided): void;
  /** It has touched the session. */
  touched(): void;
  end(run: Run): void;
}

/** Runs no process: waits, asks, and writes what the plan says. */
export function simulatedDriver(options: AgentOptions): Driver {
  const run = async (request: TurnRequest, hooks: TurnHooks): Promise<Completion> => {
    const { process, startMs, begin } = options;
    await process.sleep(startMs());
    if (hooks.signal.aborted) return stopped(hooks.signal);
    return new Agent(options, request.turn, hooks, begin(request)).live(request.approval);
  };
  return { run, stop: async () => {} };
}

/** The process of an agent that has been started for a turn. */
class Agent {
  readonly #options: AgentOptions;
  readonly #plan: Plan;
  readonly #hooks: TurnHooks;
  readonly #run: Run;
  readonly #name: string;
  readonly #aborted: Promise<void>;
  /** Since when its time goes on. */
  #since: number | undefined;

  constructor(options: AgentOptions, turn: StartTurn, hooks: TurnHooks, run: Run) {
    this.#options = options;
    this.#plan = turn.input as Plan;
    this.#hooks = hooks;
    this.#run = run;
    this.#name = [run.turn, run.attempt, run.podUID, run.decision].filter((part) => part !== undefined).join('/');
    this.#aborted = aborted(hooks.signal);
  }

  async live(decided: Decided | undefined): Promise<Completion> {
    const { content, told } = this.#options;
    const { asks = [], log } = this.#plan;
    const { signal } = this.#hooks;
    this.#hooks.started(1);
    if (log) {
      this.#run.printed = `${this.#name} ${'log '.repeat(log / 4)}\n`;
      this.#hooks.log.stderr(Buffer.from(this.#run.printed));
    }
    this.#since = this.#options.process.monotonic();
    if (decided) told(this.#run, decided);
    const attempt = `${this.#run.turn}/${this.#run.attempt}`;
    for (let number = decided ? content.askedBy(attempt) : 0; ; number++) {
      await this.#work();
      const how = asks[number];
      if (signal.aborted || how === undefined) return this.#end();
      content.ask(attempt, this.#name, this.#plan.state ?? 1);
      this.#run.asked.push(content.digest);
      const question = { prompt: `question ${number} of ${this.#name}` };
      if (how === 'Ended') {
        this.#rest();
        this.#hooks.collecting();
        return this.#over({ outcome: 'Succeeded', asks: question, exitCode: 0, leftRunning: [] });
      }
      this.#rest();
      const answer = await Promise.race([this.#options.socket({ do: 'approve', question }, signal), this.#aborted]);
      this.#since = this.#options.process.monotonic();
      // Who is killed while it waits writes nothing more.
      if (!answer) return this.#over(stopped(signal));
      if (!answer.ok) return this.#over(failure(answer.error.message));
      if (answer.approval) told(this.#run, answer.approval);
    }
  }

  /** Until the plan's time is over, or it is told to stop. */
  async #work(): Promise<void> {
    const { process } = this.#options;
    const { ms, talksMs } = this.#plan;
    const until = process.monotonic() + (ms ?? Number.POSITIVE_INFINITY);
    for (let left = until - process.monotonic(); left > 0 && !this.#hooks.signal.aborted; ) {
      const pause = Math.min(left, talksMs ?? left);
      const slept = Number.isFinite(pause) ? process.sleep(pause) : new Promise<void>(() => {});
      await Promise.race([slept, this.#aborted]);
      left = until - process.monotonic();
      if (left > 0 && talksMs !== undefined) this.#hooks.event({ left: Math.round(left) });
    }
  }

  async #end(): Promise<Completion> {
    const { process, content } = this.#options;
    const { signal } = this.#hooks;
    if (signal.aborted) await process.sleep(this.#plan.stubborn ? signal.reason.graceMs : 5);
    if (this.#plan.state !== undefined) content.write(this.#name, this.#plan.state);
    this.#rest();
    this.#hooks.collecting();
    return this.#over(signal.aborted ? stopped(signal) : ended(this.#plan, this.#name));
  }

  /** Its time stands. */
  #rest(): void {
    if (this.#since !== undefined) this.#run.ranMs += this.#options.process.monotonic() - this.#since;
    this.#since = undefined;
  }

  #over(completion: Completion): Completion {
    this.#rest();
    const { process, content, touched, socket, end } = this.#options;
    const { touchAfterMs } = this.#plan;
    const { asks, error, outcome, ...said } = completion;
    this.#run.end = {
      outcome: asks ? 'Asked' : outcome,
      ...(error ? { code: error.code, message: error.message } : {}),
      ...said,
      to: content.digest,
      stateBytes: content.bytes,
      at: process.monotonic(),
    };
    end(this.#run);
    if (touchAfterMs !== undefined) {
      process.after(touchAfterMs, 'what an agent left running touches the session', () => {
        touched();
        void socket({ do: 'touch' }, new AbortController().signal);
      });
    }
    return completion;
  }
}

function ended({ ends, output }: Plan, name: string): Completion {
  const said = { output: { run: name, text: 'x'.repeat(output) }, metadata: { by: name }, turnCount: 1 };
  const success: Completion = { ...said, outcome: 'Succeeded', exitCode: 0, leftRunning: [] };
  if (!ends) return success;
  // The runner takes it, and it is the controller that cannot store it.
  if (ends === 'MuchMetadata') return { ...success, metadata: { by: name, text: 'x'.repeat(MAX_METADATA_BYTES) } };
  const { code, exitCode } = BAD_ENDS[ends];
  return { outcome: 'Failed', error: { code, message: `as planned: ${ends}` }, exitCode, leftRunning: [] };
}

function failure(message: string): Completion {
  return { outcome: 'Failed', error: { code: 'AgentFailed', message }, exitCode: 1, leftRunning: [] };
}

function stopped({ reason }: AbortSignal): Completion {
  return { outcome: reason.outcome, error: reason.error, leftRunning: [] };
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}
