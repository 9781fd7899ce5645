import type { Readable, Writable } from 'node:stream';
import type { TerminalSize } from '../../core/enter/hello.ts';
import type { FamilyUsage, Overrun } from '../limits/overrun.ts';
import type { Exit } from './exit.ts';

export interface ProcessSpec {
  /** Path of the program; `argv0` is the name that it gets. */
  file: string;
  argv0: string;
  args: string[];
  cwd: string;
  /** The whole environment. */
  env: Record<string, string>;
  /**
   * Given: the program has a terminal of this size for its three standard streams, and all output comes by `stdout`. The terminal is gone
   * with the program; what it left running then writes nowhere.
   */
  tty?: TerminalSize;
}

export interface Survivor {
  pid: number;
  command: string;
}

/** Processes that still run after `hold`: they could not be stopped in time. */
export interface Unstopped {
  /** The first of them. */
  named: Survivor[];
  count: number;
}

export const ALL_STOPPED: Unstopped = { named: [], count: 0 };

/** Numbers of bytes, by stream. */
export interface Written {
  stdout: number;
  stderr: number;
}

/**
 * A process with all its descendants, called a family. Its streams end when the last of the family has closed them,
 * which can be long after the process itself ended.
 */
export interface Contained {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the process itself has ended. Never rejects. */
  readonly exited: Promise<Exit>;
  /** Resolves when no process of the family is left. Never rejects. */
  readonly gone: Promise<void>;
  /**
   * Output that the family had written by the last answer of `survivors` or by the end of the process, whichever was later.
   * It is undefined before, and where nothing counts it.
   */
  readonly written: Written | undefined;
  /** True while the whole family is being killed. */
  readonly killing: boolean;
  /** Usage at the last check, and exact once the process has ended; undefined where it is not measured. */
  readonly usage: FamilyUsage | undefined;
  /** The limit that ended the family, or is about to; known when the process has ended. */
  overrun: Overrun | undefined;
  /** Calls back at every new `usage`. */
  onUsage(fn: () => void): void;
  /** Sets the size of the terminal; without effect where there is none. */
  resize(size: TerminalSize): void;
  /** Signals the foreground process group of the terminal; where there is none, the program's group. */
  signal(name: NodeJS.Signals): void;
  /** Sends SIGTERM to the whole family, and SIGHUP to a program on a terminal: a shell ignores SIGTERM there. */
  terminate(): void;
  /** Sends SIGKILL to the whole family until no process is left. */
  kill(): void;
  /**
   * Stops every process of the family, until `release`, and resolves once each of their threads stands, or after two seconds. Nothing is
   * stopped where there is no keeper. Never rejects.
   */
  hold(): Promise<Unstopped>;
  /** Continues what `hold` stopped. */
  release(): void;
  /** Returns the processes that are left, without the process itself, and brings `written` up to date. */
  survivors(): Promise<Survivor[]>;
}

/** Starts a process; rejects with a StartError when the program cannot be executed. */
export type StartProcess = (spec: ProcessSpec) => Promise<Contained>;

/** Means of finding and killing descendants. */
export type Containment = 'Keeper' | 'ProcessGroup';
