import { ApiError } from '../../../core/kube/errors.ts';
import type { AttachOptions, PodStream, StreamEnd } from '../../../core/kube/types.ts';
import { MAX_METADATA_BYTES } from '../../../core/resources/limits.ts';
import type { Observer } from '../observer.ts';
import type { Dice } from '../random.ts';
import { Process, type Scheduler } from '../scheduler.ts';
import { BAD_ENDS, type Plan, type Run, type RunEnd } from './agent.ts';
import type { Exit, SimContainer } from './container.ts';
import { ContainerLog } from './container-log.ts';
import { StateContent } from './state-content.ts';

/** The work of a runnerless pod, read from its environment and labels. */
export interface RunnerlessWork {
  turn: string;
  sessionUID: string;
  incarnation: number;
  /** Input of the turn, JSON. */
  input: string;
  markers: { start: string; end: string };
}

export interface RunnerlessContainerOptions {
  name: string;
  podUID: string;
  scheduler: Scheduler;
  dice: Dice;
  observer: Observer;
  work: RunnerlessWork;
  /** Returns the current attempt of the turn. */
  attempt: () => number;
  onExit(exit: Exit): void;
}

/** Exit code of a program that SIGTERM ends. */
const TERMINATED = 143;

/** The container of a runnerless pod: a program that prints its log and its result, and ends. */
export class RunnerlessContainer implements SimContainer {
  readonly process: Process;
  readonly podUID: string;
  readonly content = new StateContent();
  readonly log: ContainerLog;
  readonly bind = undefined;
  readonly protocol = undefined;
  readonly isHardened = false;
  readonly suspendedAt = undefined;
  readonly work = undefined;
  exit: Exit | undefined;
  isHardToRead = false;
  readonly hasGarbled = false;
  readonly #options: RunnerlessContainerOptions;
  /** The result between its markers. */
  #block: string | undefined;

  constructor(options: RunnerlessContainerOptions) {
    this.#options = options;
    this.podUID = options.podUID;
    this.log = new ContainerLog(options.scheduler);
    this.process = new Process(options.name, options.scheduler);
    void this.#live();
  }

  enter(): void {}

  terminate(): void {
    this.process.after(this.#options.dice.skewed(1, 50), 'program ends by SIGTERM', () =>
      this.die({ code: TERMINATED, reason: 'Error' }),
    );
  }

  die(exit: Exit): void {
    if (this.exit) return;
    this.exit = exit;
    this.process.kill();
    this.log.ended();
    this.#options.onExit(exit);
  }

  /** Does nothing: an attach to a runnerless pod carries no data. */
  cut(): void {}

  /** Opens an attach that discards what is written: the program reads its input from its environment. */
  attach(_options: AttachOptions): PodStream {
    if (this.exit) throw new ApiError({ code: 400, reason: 'BadRequest', message: 'container is not running' });
    const { promise, resolve } = Promise.withResolvers<StreamEnd>();
    const close = () => resolve({ by: 'local' });
    return { write: async () => {}, closeStdin: close, pause: () => {}, resume: () => {}, close, closed: promise };
  }

  hasLogged(): boolean {
    return this.#block !== undefined && this.log.hasOneOf(new Set([this.#block]));
  }

  async #live(): Promise<void> {
    const { process } = this;
    const { dice, work, observer, podUID, attempt } = this.#options;
    await process.sleep(dice.skewed(1, 60));
    const plan = JSON.parse(work.input) as Plan;
    const run: Run = {
      turn: work.turn,
      attempt: attempt(),
      podUID,
      sessionUID: work.sessionUID,
      incarnation: work.incarnation,
      decision: undefined,
      restored: false,
      isRunnerless: true,
      timeoutMs: Number.POSITIVE_INFINITY,
      stallMs: Number.POSITIVE_INFINITY,
      plan,
      startedAt: process.monotonic(),
      ranMs: 0,
      printed: plan.log ? `${work.turn}/${podUID} ${'log '.repeat(plan.log / 4)}\n` : '',
      files: [],
      environment: undefined,
      left: new Map(),
      from: this.content.digest,
      asked: [],
      changed: [],
    };
    observer.runStarted(run, this);
    if (run.printed) this.log.push(run.printed);
    if (plan.ms === undefined) return;
    await process.sleep(plan.ms);
    run.ranMs = process.monotonic() - run.startedAt;
    const { text, ...end } = ended(plan, `${work.turn}/${run.attempt}/${podUID}`);
    if (text !== undefined) {
      const { start, end: last } = work.markers;
      this.#block = `${start}${text}${last}\n`;
      this.log.push(this.#block);
    }
    run.end = { ...end, leftRunning: [], to: run.from, stateBytes: 0, at: process.monotonic() };
    observer.runEnded(run, this);
    const code = end.exitCode ?? 0;
    this.die({ code, reason: code === 0 ? 'Completed' : 'Error' });
  }
}

/** Returns the text that the program prints as its result, and the end that the turn has to show. */
function ended(
  { ends, output }: Plan,
  name: string,
): Pick<RunEnd, 'outcome' | 'code' | 'exitCode'> & { text?: string } {
  const said = { output: { run: name, text: 'x'.repeat(output) }, metadata: { by: name }, turnCount: 1 };
  const text = (envelope: object) => ({ text: JSON.stringify(envelope) });
  const { turnCount: turn_count, ...rest } = said;
  const success = { status: 'success', ...rest, turn_count };
  if (!ends) return { ...said, outcome: 'Succeeded', exitCode: 0, ...text(success) };
  const { exitCode } = BAD_ENDS[ends];
  const failed = (code: string) => ({ outcome: 'Failed' as const, code, exitCode });
  switch (ends) {
    case 'Error':
      return { ...failed('AgentFailed'), ...text({ status: 'error', error: 'as planned' }) };
    case 'ExitCode':
      return failed('AgentFailed');
    case 'InvalidResult':
      return { ...failed('InvalidResult'), text: 'no JSON' };
    case 'MuchMetadata':
      return {
        ...said,
        ...failed('ResultRejected'),
        metadata: undefined,
        ...text({ ...success, metadata: { text: 'x'.repeat(MAX_METADATA_BYTES) } }),
      } as ReturnType<typeof ended>;
    default:
      return failed('MissingEnvelope');
  }
}
