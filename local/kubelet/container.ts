/** A run of a container: a child process with its own session, streams, log and exit. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { dirname } from 'node:path';
import type { Clock } from '../../core/runtime.ts';
import { LogFile } from './log-file.ts';
import { MARKER_CONTAINER, MARKER_ROOT } from './markers.ts';
import { Output } from './output.ts';
import type { PipeFactory, StandardStreams } from './pipes.ts';
import type { ProcessTable } from './process-table.ts';
import { type Belonging, identify, killBelonging, type ProcessIdentity, sendSignal } from './processes.ts';

/** Time that the pipes may stay open after the last process has gone, milliseconds. */
const DRAIN_MS = 1_000;
/** Interval of checks within that time: the pipes are read in between, even after a long pause of this process. */
const DRAIN_LOOK_MS = 50;

/** Cause for `notStarted`. */
export const NOT_FOUND = 'executable file not found on this machine';

/** The process could not be started, and cannot be with this configuration. */
export class StartError extends Error {
  readonly code = 'StartError';
}

export interface Launch {
  /** Program and arguments. */
  argv: string[];
  workingDir: string;
  env: Record<string, string>;
  /** Programs of the image that are other files here, by their path in it. */
  programs?: Readonly<Record<string, string>> | undefined;
}

export interface Exit {
  /** 128 + the signal's number for a process that a signal ended. */
  exitCode: number;
  /** Milliseconds since the epoch. */
  finishedAt: number;
}

export interface ContainerDeps {
  table: ProcessTable;
  pipes: PipeFactory;
  clock: Clock;
}

/** Returns the program to start. Throws a `StartError` where there is none, or no directory to start it in. */
export function programOf({ argv, workingDir }: Launch): string {
  const [program] = argv;
  if (!program) throw new StartError('no command specified');
  if (!statSync(workingDir, { throwIfNoEntry: false })?.isDirectory()) {
    throw new StartError(`chdir to cwd ("${workingDir}") failed: no such directory on this machine`);
  }
  return program;
}

/** Returns the error of a program that cannot be executed. */
export function notStarted(program: string, cause: string): StartError {
  return new StartError(`unable to start container process: exec: "${program}": ${cause}`);
}

/**
 * Starts a process that leads a session of its own; resolves when the program runs. Rejects with a `StartError` worded
 * like a container runtime's.
 */
export async function launch(how: Launch, streams: StandardStreams): Promise<{ child: ChildProcess; pid: number }> {
  try {
    const program = programOf(how);
    const { argv, workingDir, env } = how;
    const child = spawn(program, argv.slice(1), { cwd: workingDir, env, stdio: streams.childFds, detached: true });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error: NodeJS.ErrnoException) => {
        reject(notStarted(program, error.code === 'ENOENT' ? NOT_FOUND : error.message));
      });
    });
    return { child, pid: child.pid! };
  } finally {
    streams.closeChildEnds();
  }
}

function exitCode(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal ? osConstants.signals[signal] : 0);
}

/** Resolves with the exit code of a running child. */
export function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve(exitCode(code, signal))));
}

export class RunningContainer {
  readonly identity: ProcessIdentity;
  readonly startedAt: number;
  readonly launch: Launch;
  readonly log: LogFile;
  readonly output: Output;
  readonly stdin: StandardStreams['stdin'];
  /** Settles once no process of the container is left and all its output is in the log. */
  readonly ended: Promise<Exit>;
  /** False from the moment the first process has ended. */
  running = true;
  readonly #deps: ContainerDeps;

  private constructor(
    deps: ContainerDeps,
    how: Launch,
    identity: ProcessIdentity,
    streams: StandardStreams,
    log: LogFile,
    exited: Promise<number>,
  ) {
    this.#deps = deps;
    this.launch = how;
    this.identity = identity;
    this.startedAt = deps.clock.now();
    this.log = log;
    this.stdin = streams.stdin;
    this.output = new Output(streams.stdout, streams.stderr, log);
    this.ended = this.#untilEnd(exited, streams);
  }

  /** Rejects with a `StartError`. The log at `logPath` is begun anew. */
  static async start(deps: ContainerDeps, how: Launch, withStdin: boolean, logPath: string): Promise<RunningContainer> {
    mkdirSync(dirname(logPath), { recursive: true, mode: 0o700 });
    const streams = await deps.pipes.open(withStdin);
    const log = new LogFile(logPath, deps.clock);
    try {
      const { child, pid } = await launch(how, streams);
      const exited = exitOf(child);
      const identity = identify(deps.table, pid) ?? { pid, start: -1, bootId: deps.table.bootId() };
      return new RunningContainer(deps, how, identity, streams, log, exited);
    } catch (error) {
      streams.destroy();
      log.close();
      throw error;
    }
  }

  /** Signals the container's first process only, as a runtime does. */
  terminate(): void {
    if (this.running) sendSignal(this.identity.pid, 'SIGTERM');
  }

  /** Kills all of the container's processes; `ended` settles soon after. */
  async kill(): Promise<void> {
    await killBelonging(this.#deps.table, this.#belonging());
  }

  #belonging(): Belonging {
    const root = this.launch.env[MARKER_ROOT];
    const name = this.launch.env[MARKER_CONTAINER];
    return {
      leaders: [this.identity],
      marked: (environment) => environment.get(MARKER_ROOT) === root && environment.get(MARKER_CONTAINER) === name,
    };
  }

  async #untilEnd(exited: Promise<number>, streams: StandardStreams): Promise<Exit> {
    const code = await exited;
    const finishedAt = this.#deps.clock.now();
    this.running = false;
    // No process survives the first one, as in a real container.
    await this.kill();
    await this.#drained();
    this.output.dropStalled();
    await this.#drained();
    this.log.close();
    this.output.close();
    streams.destroy();
    return { exitCode: code, finishedAt };
  }

  /** Resolves when all output has been read, or the time for it is over. */
  async #drained(): Promise<void> {
    let all = false;
    const ended = this.output.ended.then(() => {
      all = true;
    });
    for (let waited = 0; !all && waited < DRAIN_MS; waited += DRAIN_LOOK_MS) {
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, DRAIN_LOOK_MS))]);
    }
  }
}
