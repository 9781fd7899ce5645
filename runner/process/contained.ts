import type { Readable, Writable } from 'node:stream';
import type { FamilyUsage, Overrun } from '../limits/overrun.ts';
import type { Exit } from './exit.ts';

export interface ProcessSpec {
  /** The program's path; `argv0` is the name it is given. */
  file: string;
  argv0: string;
  args: string[];
  cwd: string;
  /** All of its environment. */
  env: Record<string, string>;
}

export interface Survivor {
  pid: number;
  command: string;
}

/** Bytes of each stream. */
export interface Written {
  stdout: number;
  stderr: number;
}

/**
 * A process and everything that descends from it. Its streams end when the last of the family has closed them, which can
 * be long after the process itself ended.
 */
export interface Contained {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The process itself has ended. Never rejects. */
  readonly exited: Promise<Exit>;
  /** Nobody of the family is left. Never rejects. */
  readonly gone: Promise<void>;
  /** What the family had written by the end of the process; known when it has ended, undefined where nobody counts. */
  readonly written: Written | undefined;
  /** All of it is being killed. */
  readonly killing: boolean;
  /** As of the last look, and exact once the process has ended; undefined where nobody looks. */
  readonly usage: FamilyUsage | undefined;
  /** The limit that ended it, or is about to; known when the process has ended. */
  overrun: Overrun | undefined;
  /** Calls back at every new `usage`. */
  onUsage(fn: () => void): void;
  /** SIGTERM to the whole family. */
  terminate(): void;
  /** SIGKILL to the whole family, until nobody is left. */
  kill(): void;
  /** Who is left, without the process itself. */
  survivors(): Promise<Survivor[]>;
}

/** Rejects with a StartError when the program cannot be executed. */
export type StartProcess = (spec: ProcessSpec) => Promise<Contained>;

/** How descendants are held. */
export type Containment = 'Keeper' | 'ProcessGroup';
