import { createHash } from 'node:crypto';
import { anySignal } from '../../../core/abort.ts';
import { digestOf } from '../../../core/artifacts/packed.ts';
import type { Decided } from '../../../core/frames/messages.ts';
import { MAX_METADATA_BYTES } from '../../../core/resources/limits.ts';
import type { Answer } from '../../../runner/agent-socket/socket.ts';
import type { Completion, Driver, TurnHooks, TurnRequest } from '../../../runner/drivers/driver.ts';
import type { Process } from '../scheduler.ts';
import type { OutputContent } from './output-content.ts';
import type { StateContent } from './state-content.ts';

/** Failures of an agent, each with the code and exit code that the turn has to show. */
export const BAD_ENDS = {
  Error: { code: 'AgentFailed', exitCode: 0 },
  ExitCode: { code: 'AgentFailed', exitCode: 3 },
  NoResult: { code: 'MissingEnvelope', exitCode: 0 },
  InvalidResult: { code: 'InvalidResult', exitCode: 0 },
  MuchOutput: { code: 'OutputTooLarge', exitCode: 0 },
  MuchMetadata: { code: 'ResultRejected', exitCode: 0 },
} as const;

export type BadEnd = keyof typeof BAD_ENDS;

/** Behaviour of the simulated agent in a turn. It is the turn's input, so that a trace shows it. */
export interface Plan {
  /** Milliseconds until the agent's next question or its end; absent: the agent never ends by itself. */
  ms?: number;
  /** Bytes of the text in the output. */
  output: number;
  /** Minimum bytes of the state after the agent has added its run; absent: the agent leaves the state unchanged. */
  state?: number;
  /** Bytes of each file that the agent leaves in BERTH_OUTPUT_DIR. */
  leaves?: readonly number[];
  /** Bytes that the agent prints. */
  log?: number;
  /** Failure by which the agent ends; absent: success. */
  ends?: BadEnd;
  /** True for an agent that ends only when it is killed. */
  stubborn?: boolean;
  /** Interval of the agent's signs of life, milliseconds. */
  talksMs?: number;
  /** Questions before the end, in order: asked by a process that waits (Alive), or by ending (Ended). */
  asks?: ('Alive' | 'Ended')[];
  /** Milliseconds between two changes of the state while a process waits for a decision; absent: it changes nothing. */
  writesEveryMs?: number;
  /**
   * Milliseconds from the agent's end until a process that it left running touches the session, and ends. From the agent's start on that
   * process writes to the state whenever it may run.
   */
  touchAfterMs?: number;
  /** Packages of the environment that a build ends with. */
  builds?: readonly string[];
  /** Code that the builder gives with a failure. */
  code?: string;
}

/** A start of an agent for a turn. Results are compared with it. */
export interface Run {
  turn: string;
  attempt: number;
  podUID: string;
  sessionUID: string;
  incarnation: number;
  /** Id of the request whose decision the agent was started with. */
  decision: string | undefined;
  /** True when the agent was told that it is restored. */
  restored: boolean;
  /** Timeouts of the turn as its runner was told them: of the run, and of silence. */
  timeoutMs: number;
  stallMs: number;
  /** True for a run in a runnerless pod. */
  isRunnerless: boolean;
  plan: Plan;
  startedAt: number;
  /** Milliseconds on the turn's clock, which stands still while the agent waits for a decision. */
  ranMs: number;
  /** Text that the agent printed. */
  printed: string;
  /** Contents of the agent's files when it started, one for each ConfigMap. */
  files: readonly string[];
  /** Run that has built the agent's environment, as its state names it; undefined where it has none. */
  environment: string | undefined;
  /** Digest by name of the files that the agent has left in BERTH_OUTPUT_DIR. */
  left: Map<string, string>;
  /** Digest of the state directory when the agent started. */
  from: string;
  /** Digests of the state directory at each question. */
  asked: string[];
  /** Digests of the state directory after each change while the agent waited for the decision on its last question. */
  changed: string[];
  /** End of the run; absent while the agent runs, and for ever when its pod was killed. */
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

/** Reports whether the runner sends a result for the run. One that was told to stop, or whose agent asks, sends none. */
export function sendsResult({ end }: Run): boolean {
  return end !== undefined && !['Asked', 'PodLost', 'Suspended'].includes(end.code ?? end.outcome);
}

export interface AgentOptions {
  process: Process;
  content: StateContent;
  /** BERTH_OUTPUT_DIR; undefined where the runner has none. */
  output: () => OutputContent | undefined;
  startMs: () => number;
  /** Handler behind `BERTH_SOCKET`. */
  socket: Answer;
  /** Called when an agent's process starts for the turn. */
  begin(request: TurnRequest): Run;
  /** Called when the agent is told a decision. */
  told(run: Run, decided: Decided): void;
  /** Called when the agent tells an event. */
  talked(run: Run): void;
  /** Starts a process of the agent that writes to the state; returns the function that ends it. */
  startWriter(): () => void;
  /** Called when a process that the agent left running touches the session. */
  touched(): void;
  end(run: Run): void;
}

/** Creates a driver that runs no process: it waits, asks and writes as the plan says. */
export function simulatedDriver(options: AgentOptions): Driver {
  const run = async (request: TurnRequest, hooks: TurnHooks): Promise<Completion> => {
    const { process, startMs, begin } = options;
    await process.sleep(startMs());
    if (hooks.signal.aborted) return stopped(hooks.signal);
    return new Agent(options, hooks, begin(request)).live(request.approval);
  };
  return { run, stop: async () => {} };
}

/** The simulated process of an agent that was started for a turn. */
class Agent {
  readonly #options: AgentOptions;
  readonly #plan: Plan;
  readonly #hooks: TurnHooks;
  readonly #run: Run;
  readonly #name: string;
  readonly #aborted: Promise<void>;
  #endWriter: () => void = () => {};
  /** Start of the current stretch on the turn's clock; undefined while the clock stands still. */
  #since: number | undefined;

  constructor(options: AgentOptions, hooks: TurnHooks, run: Run) {
    this.#options = options;
    this.#plan = run.plan;
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
    if (this.#plan.touchAfterMs !== undefined) this.#endWriter = this.#options.startWriter();
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
      this.#run.changed = [];
      const question = { prompt: `question ${number} of ${this.#name}` };
      if (how === 'Ended') {
        this.#leave();
        this.#rest();
        this.#hooks.collecting();
        return this.#over({ outcome: 'Succeeded', asks: question, exitCode: 0, leftRunning: [] });
      }
      this.#rest();
      const answered = new AbortController();
      this.#writeUntil(anySignal(signal, answered.signal));
      const answer = await Promise.race([this.#options.socket({ do: 'approve', question }, signal), this.#aborted]);
      answered.abort();
      this.#since = this.#options.process.monotonic();
      // An agent that is killed while it waits writes nothing more.
      if (!answer) return this.#over(stopped(signal));
      if (!answer.ok) return this.#over(failure(answer.error.message));
      if (answer.approval) told(this.#run, answer.approval);
    }
  }

  /** Resolves when the plan's time is over or the agent is told to stop. */
  async #work(): Promise<void> {
    const { process } = this.#options;
    const { ms, talksMs } = this.#plan;
    const until = process.monotonic() + (ms ?? Number.POSITIVE_INFINITY);
    for (let left = until - process.monotonic(); left > 0 && !this.#hooks.signal.aborted; ) {
      const pause = Math.min(left, talksMs ?? left);
      const slept = Number.isFinite(pause) ? process.sleep(pause) : new Promise<void>(() => {});
      await Promise.race([slept, this.#aborted]);
      left = until - process.monotonic();
      if (left <= 0 || talksMs === undefined) continue;
      this.#hooks.event({ left: Math.round(left) });
      this.#options.talked(this.#run);
    }
  }

  /** Changes the state from time to time, as another process of the agent does while one waits for a decision. */
  #writeUntil(signal: AbortSignal): void {
    const { writesEveryMs } = this.#plan;
    if (writesEveryMs === undefined) return;
    const { process, content } = this.#options;
    process.after(writesEveryMs, 'an agent that waits changes its state', () => {
      if (signal.aborted) return;
      content.write(this.#name, (this.#plan.state ?? 1) + this.#run.changed.length + 1);
      this.#run.changed.push(content.digest);
      this.#writeUntil(signal);
    });
  }

  async #end(): Promise<Completion> {
    const { process, content } = this.#options;
    const { signal } = this.#hooks;
    if (signal.aborted) await process.sleep(this.#plan.stubborn ? signal.reason.graceMs : 5);
    if (this.#plan.state !== undefined) content.write(this.#name, this.#plan.state);
    this.#leave();
    this.#rest();
    this.#hooks.collecting();
    return this.#over(signal.aborted ? stopped(signal) : ended(this.#plan, this.#name));
  }

  /** Leaves files in BERTH_OUTPUT_DIR; each leg of a turn has names of its own. */
  #leave(): void {
    const output = this.#options.output();
    for (const [number, bytes] of output ? (this.#plan.leaves ?? []).entries() : []) {
      const name = `${this.#run.decision ?? 'first'}/${number}`;
      const content = incompressible(`${number} of ${this.#name}`, bytes);
      output?.write(name, content);
      this.#run.left.set(name, digestOf(content));
    }
  }

  /** Stops the turn's clock. */
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
        this.#endWriter();
        touched();
        void socket({ do: 'touch' }, new AbortController().signal);
      });
    }
    return completion;
  }
}

function ended({ ends, output, builds, code: told }: Plan, name: string): Completion {
  if (builds) return built(builds);
  const said = { output: { run: name, text: 'x'.repeat(output) }, metadata: { by: name }, turnCount: 1 };
  const success: Completion = { ...said, outcome: 'Succeeded', exitCode: 0, leftRunning: [] };
  if (!ends) return success;
  // The runner accepts metadata of this size; the controller cannot store it.
  if (ends === 'MuchMetadata') return { ...success, metadata: { by: name, text: 'x'.repeat(MAX_METADATA_BYTES) } };
  const { code, exitCode } = BAD_ENDS[ends];
  const metadata = told === undefined ? {} : { metadata: { code: told } };
  return { outcome: 'Failed', error: { code, message: `as planned: ${ends}` }, exitCode, ...metadata, leftRunning: [] };
}

/** Description that the builder gives of these packages, each with its version. */
function built(pinned: readonly string[]): Completion {
  const packages = pinned.map((each) => {
    const [name = '', version = ''] = each.split('==');
    return { name, version, hashes: [`sha256:${version.padStart(64, '0')}`] };
  });
  const output = { python: '3.12.1', uv: '0.0.0', packages, bytes: 1 };
  return { outcome: 'Succeeded', output, exitCode: 0, leftRunning: [] };
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

/** Text with bytes behind it that compression makes no smaller, so that the store holds as many. */
function incompressible(text: string, bytes: number): Buffer {
  const blocks = [Buffer.from(text)];
  for (let at = text.length; at < bytes; at += 32) blocks.push(createHash('sha256').update(`${text} ${at}`).digest());
  return Buffer.concat(blocks).subarray(0, Math.max(bytes, text.length));
}
