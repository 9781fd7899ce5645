/** Takes one container of a pod through its runs: waiting, running, ended, and again if the restart policy says so. */

import { aborted } from '../../core/abort.ts';
import { type Clock, pause } from '../../core/runtime.ts';
import { type ContainerDeps, type Launch, RunningContainer, StartError } from './container.ts';
import { ContainerConfigError } from './environment.ts';
import { findImage, pullError } from './images.ts';
import type { ProcessIdentity } from './processes.ts';
import { type ContainerView, restarts, timestamp } from './status.ts';
import type { Container, ContainerState, Image, Images } from './types.ts';

/** Interval of retries for a container that lacks a Secret or ConfigMap, milliseconds. */
const CONFIG_RETRY_MS = 500;
/** Time after which a missing image is shown as backing off, as in a real kubelet; milliseconds. */
const PULL_BACKOFF_MS = 1_000;
const FIRST_RESTART_MS = 10_000;
const MAX_RESTART_MS = 300_000;

export interface LoopDeps {
  container: ContainerDeps;
  clock: Clock;
  images: Images;
  restartPolicy: string | undefined;
  /** Prepares a run; rejects with a `ContainerConfigError` while something it needs is missing. */
  prepare(container: Container, image: Image): Promise<Launch>;
  logPath(container: string, restartCount: number): string;
  /** Records on disk that a run begins, then its process, and in the end that this is gone. */
  record(container: string, restartCount: number, process?: ProcessIdentity): void;
  /** Handler of a change of the view. */
  changed(): void;
  event(type: 'Normal' | 'Warning', reason: string, message: string): void;
}

export class ContainerLoop {
  readonly view: ContainerView;
  readonly spec: Container;
  /** The current or last run since the kubelet started. */
  current: RunningContainer | undefined;
  readonly #deps: LoopDeps;

  constructor(deps: LoopDeps, spec: Container, before?: Pick<ContainerView, 'restartCount' | 'state' | 'lastState'>) {
    this.#deps = deps;
    this.spec = spec;
    this.view = {
      name: spec.name,
      image: spec.image ?? '',
      containerID: undefined,
      restartCount: before?.restartCount ?? 0,
      state: before?.state ?? { waiting: { reason: 'ContainerCreating' } },
      lastState: before?.lastState ?? {},
    };
  }

  /** Resolves when the container has ended for good, or has ended after `stopping` aborted. Never rejects. */
  async run(stopping: AbortSignal): Promise<void> {
    const { terminated } = this.view.state;
    if (terminated && !(await this.#again(terminated.exitCode, stopping))) return;
    const image = findImage(this.#deps.images, this.view.image);
    if (!image) return this.#noImage(stopping);
    for (;;) {
      const exitCode = await this.#once(image, stopping);
      if (exitCode === undefined || !(await this.#again(exitCode, stopping))) return;
    }
  }

  /** Sends TERM to the container's first process. */
  terminate(): void {
    this.current?.terminate();
  }

  async kill(): Promise<void> {
    await this.current?.kill();
  }

  #set(state: ContainerState): void {
    this.view.state = state;
    this.#deps.changed();
  }

  /** Runs the container once; undefined when it was stopped before it began. */
  async #once(image: Image, stopping: AbortSignal): Promise<number | undefined> {
    const { view, spec } = this;
    const { clock } = this.#deps;
    let run: RunningContainer | undefined;
    try {
      const launch = await this.#prepared(image, stopping);
      if (!launch) return undefined;
      this.#deps.record(view.name, view.restartCount);
      const logPath = this.#deps.logPath(view.name, view.restartCount);
      run = await RunningContainer.start(this.#deps.container, launch, spec.stdin === true, logPath);
      this.current = run;
      this.#deps.record(view.name, view.restartCount, run.identity);
    } catch (error) {
      // A process that is in no record must not go on: nobody would end it after a kill of this program.
      await run?.kill();
      await run?.ended;
      const message = (error as Error).message;
      const now = timestamp(clock.now());
      this.#deps.event('Warning', 'Failed', `Error: ${message}`);
      const reason = error instanceof StartError ? error.code : 'ContainerCannotRun';
      this.#set({ terminated: { exitCode: 128, reason, message, startedAt: now, finishedAt: now } });
      return 128;
    }
    view.containerID = `process://${run.identity.pid}`;
    const startedAt = timestamp(run.startedAt);
    if (run.running) this.#set({ running: { startedAt } });
    this.#deps.event('Normal', 'Started', `Started container ${view.name}`);
    // The container was stopped during its start: no process can end regularly yet.
    if (stopping.aborted) await run.kill();
    const { exitCode, finishedAt } = await run.ended;
    this.#forgetProcess();
    this.#set({
      terminated: {
        exitCode,
        reason: exitCode === 0 ? 'Completed' : 'Error',
        startedAt,
        finishedAt: timestamp(finishedAt),
        containerID: view.containerID,
      },
    });
    return exitCode;
  }

  /** Takes a process that has ended out of the record: a later session of the machine can have its number. */
  #forgetProcess(): void {
    try {
      this.#deps.record(this.view.name, this.view.restartCount);
    } catch {
      // On a full disk the record of the start stays.
    }
  }

  /** Waits until everything that the container names exists; undefined when stopped first. */
  async #prepared(image: Image, stopping: AbortSignal): Promise<Launch | undefined> {
    for (;;) {
      if (stopping.aborted) return undefined;
      try {
        return await this.#deps.prepare(this.spec, image);
      } catch (error) {
        if (!(error instanceof ContainerConfigError)) throw error;
        if (this.view.state.waiting?.message !== error.message) {
          this.#deps.event('Warning', 'Failed', `Error: ${error.message}`);
          this.#set({ waiting: { reason: error.code, message: error.message } });
        }
        await pause(this.#deps.clock, CONFIG_RETRY_MS, stopping);
      }
    }
  }

  async #noImage(stopping: AbortSignal): Promise<void> {
    const { image } = this.view;
    this.#deps.event('Warning', 'Failed', `Failed to pull image "${image}": ${pullError(image)}`);
    this.#set({ waiting: { reason: 'ErrImagePull', message: pullError(image) } });
    if (!(await pause(this.#deps.clock, PULL_BACKOFF_MS, stopping))) return;
    this.#deps.event('Warning', 'BackOff', `Back-off pulling image "${image}"`);
    const message = `Back-off pulling image "${image}": ErrImagePull: ${pullError(image)}`;
    this.#set({ waiting: { reason: 'ImagePullBackOff', message } });
    await aborted(stopping);
  }

  /** Waits for the next run after an end. Returns false when there is none. */
  async #again(exitCode: number, stopping: AbortSignal): Promise<boolean> {
    const { view } = this;
    if (stopping.aborted || !restarts(this.#deps.restartPolicy, exitCode)) return false;
    const before = view.state;
    if (view.restartCount > 0) {
      const wait = Math.min(FIRST_RESTART_MS * 2 ** (view.restartCount - 1), MAX_RESTART_MS);
      const message = `back-off ${wait / 1000}s restarting failed container=${view.name}`;
      view.lastState = before;
      this.#set({ waiting: { reason: 'CrashLoopBackOff', message } });
      this.#deps.event('Warning', 'BackOff', `Back-off restarting failed container ${view.name}`);
      if (!(await pause(this.#deps.clock, wait, stopping))) return false;
    }
    view.lastState = before;
    view.restartCount += 1;
    return true;
  }
}
