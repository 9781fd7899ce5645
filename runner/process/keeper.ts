import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { getSystemErrorName } from 'node:util';
import type { TerminalSize } from '../../core/enter/hello.ts';
import type { Limits } from '../../core/frames/messages.ts';
import type { Clock } from '../../core/runtime.ts';
import { type FamilyUsage, fieldOf, type Overrun, outOfSight, overrunOf } from '../limits/overrun.ts';
import { keeperLimits } from '../limits/rlimits.ts';
import { StartError } from '../system/errors.ts';
import {
  ALL_STOPPED,
  type Contained,
  type StartProcess,
  type Survivor,
  type Unstopped,
  type Written,
} from './contained.ts';
import type { Exit } from './exit.ts';
import { spawnFailure } from './spawn.ts';

/** Interval of SIGCONT, after which no keeper stays stopped unless it is stopped again and again. */
const WAKE_MS = 1000;
/** Time within which the keeper reports the start; a keeper that has not is being stopped by that program. */
const START_DEADLINE_MS = 30_000;
/** Time within which the keeper kills its family; a keeper that has not is itself being stopped by it. */
const KILL_DEADLINE_MS = 3000;
/**
 * Time within which the keeper lists or holds its processes; a keeper that has not is being stopped by a process of its family.
 */
const ANSWER_DEADLINE_MS = 3000;
/**
 * Time that a keeper gets that misses a deadline and is not stopped. It is only short of CPU, which is no reason to
 * lose track of its family.
 */
const SLOW_DEADLINE_MS = 30_000;

/** Starts processes under `runner/keeper`, within the limits; its README describes the protocol. */
export function keeperStart(keeper: string, clock: Clock, limits: Limits): StartProcess {
  return (spec) =>
    new Promise((resolve, reject) => {
      let child: ChildProcess;
      try {
        const first = keeperLimits(limits, process.pid === 1, spec.tty);
        child = spawn(keeper, [first, spec.file, spec.argv0, ...spec.args], {
          cwd: spec.cwd,
          env: spec.env,
          stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
        });
      } catch (error) {
        reject(spawnFailure(error));
        return;
      }
      child.on('error', (error) => reject(spawnFailure(error)));
      // Node sets no stdio when no more files can be opened, and reports that by `error`.
      if (child.stdio) new Kept(child, limits, clock, resolve, reject);
    });
}

class Kept implements Contained {
  pid = 0;
  usage: FamilyUsage | undefined;
  overrun: Overrun | undefined;
  written: Written | undefined;
  killing = false;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exited: Promise<Exit>;
  readonly gone: Promise<void>;
  readonly #child: ChildProcess;
  readonly #control: Writable & Readable;
  readonly #limits: Limits;
  readonly #clock: Clock;
  readonly #onStart: (kept: Contained) => void;
  readonly #onFail: (error: StartError) => void;
  #onExit!: (exit: Exit) => void;
  #onGone!: () => void;
  readonly #cancelDeadline: () => void;
  #cancelWake = () => {};
  /** The end of the program is reported. */
  #isReaped = false;
  #isGone = false;
  #line = '';
  #listed: Survivor[] = [];
  #onUsage = () => {};
  readonly #onListed: ((survivors: Survivor[]) => void)[] = [];
  #unstopped: Survivor[] = [];
  readonly #onHeld: ((unstopped: Unstopped) => void)[] = [];

  constructor(
    child: ChildProcess,
    limits: Limits,
    clock: Clock,
    onStart: (kept: Contained) => void,
    onFail: (error: StartError) => void,
  ) {
    this.#child = child;
    this.#limits = limits;
    this.#clock = clock;
    this.#onStart = onStart;
    this.#onFail = onFail;
    this.exited = new Promise((resolve) => {
      this.#onExit = resolve;
    });
    this.gone = new Promise((resolve) => {
      this.#onGone = resolve;
    });
    this.stdin = child.stdin as Writable;
    this.stdout = child.stdout as Readable;
    this.stderr = child.stderr as Readable;
    this.#control = child.stdio[3] as Writable & Readable;
    this.#control.setEncoding('utf8');
    this.#control.on('data', (text: string) => this.#read(text));
    // The other end disappears with the keeper, which `close` reports.
    this.#control.on('error', () => {});
    this.#control.on('close', () => this.#ended());
    this.#cancelDeadline = clock.setTimer(START_DEADLINE_MS, () => {
      this.#onFail(new StartError('keeper', 'stopped'));
      this.#child.kill('SIGKILL');
    });
    this.#wake();
  }

  onUsage(fn: () => void): void {
    this.#onUsage = fn;
  }

  resize({ rows, columns }: TerminalSize): void {
    this.#send(`W${rows} ${columns}\n`);
  }

  signal(name: NodeJS.Signals): void {
    this.#send(`N${constants.signals[name]}\n`);
  }

  terminate(): void {
    this.#send('T');
  }

  kill(): void {
    if (this.#isGone) return;
    this.killing = true;
    this.#send('K');
    this.#killStopped(KILL_DEADLINE_MS);
  }

  survivors(): Promise<Survivor[]> {
    return this.#isGone ? Promise.resolve([]) : this.#ask('L', this.#onListed);
  }

  hold(): Promise<Unstopped> {
    return this.#isGone ? Promise.resolve(ALL_STOPPED) : this.#ask('S', this.#onHeld);
  }

  release(): void {
    this.#send('C');
  }

  /** Sends a command, whose answer comes to the last of `waiting`. */
  #ask<T>(command: 'L' | 'S', waiting: ((answer: T) => void)[]): Promise<T> {
    return new Promise((resolve) => {
      const cancel = this.#killStopped(ANSWER_DEADLINE_MS);
      waiting.push((answer) => {
        cancel();
        resolve(answer);
      });
      this.#send(command);
    });
  }

  #send(command: 'T' | 'K' | 'L' | 'S' | 'C' | `${'W' | 'N'}${string}\n`): void {
    if (!this.#isGone) this.#control.write(command);
  }

  /**
   * Wakes the keeper. The agent has the runner's uid and can stop its keeper, and with it the output, the limits, and
   * the report of its end.
   */
  #wake(): void {
    this.#child.kill('SIGCONT');
    this.#cancelWake = this.#clock.setTimer(WAKE_MS, () => this.#wake());
  }

  /**
   * Kills a keeper that is stopped at the deadline, and a slow one later. Returns the function that cancels this. The
   * keeper must be seen stopped twice, because another keeper may hold the whole container for a moment.
   */
  #killStopped(deadlineMs: number): () => void {
    const end = this.#clock.monotonic() + SLOW_DEADLINE_MS;
    let cancel = () => {};
    const wait = (ms: number, wasStopped: boolean) => {
      cancel = this.#clock.setTimer(ms, () => {
        if (this.#isGone) return;
        const stopped = isStopped(this.#child.pid);
        if ((stopped && wasStopped) || this.#clock.monotonic() >= end) this.#child.kill('SIGKILL');
        else wait(WAKE_MS, stopped);
      });
    };
    wait(deadlineMs, false);
    return () => cancel();
  }

  #read(text: string): void {
    const lines = (this.#line + text).split('\n');
    this.#line = lines.pop() ?? '';
    for (const line of lines) this.#obey(line);
  }

  #obey(line: string): void {
    const [word, first = '', ...rest] = line.split(' ');
    const value = Number(first);
    if (word === 'pid') {
      this.pid = value;
    } else if (word === 'start') {
      this.#cancelDeadline();
      this.#onStart(this);
    } else if (word === 'fail') {
      this.pid = 0;
      const step = first === 'limit' ? `limit ${fieldOf(rest[1] ?? '')}` : first;
      this.#onFail(new StartError(step, errnoName(Number(rest[0]))));
    } else if (word === 'exit' || word === 'signal') {
      this.#isReaped = true;
      const [stdout = 0, stderr = 0] = rest.map(Number);
      this.written = { stdout, stderr };
      this.#onExit(word === 'exit' ? { code: value, signal: null } : { code: null, signal: signalName(value) });
    } else if (word === 'use') {
      const [memoryBytes = 0, peakBytes = 0, processes = 0, mostProcesses = 0] = rest.map(Number);
      this.usage = { cpuUs: value, memoryBytes, peakBytes, processes, mostProcesses };
      this.#onUsage();
    } else if (word === 'over') {
      this.overrun ??= overrunOf(first, Number(rest[0]), this.#limits);
      // The keeper already kills its family, but may be stopped by it meanwhile.
      this.kill();
    } else if (word === 'blind') {
      this.overrun ??= outOfSight(errnoName(value));
      this.#onFail(new StartError('look', errnoName(value)));
    } else if (word === 'left') {
      // A process that began after the program's end may have its pid.
      if (value !== this.pid || this.#isReaped) this.#listed.push({ pid: value, command: rest.join(' ') });
    } else if (word === 'listed') {
      this.written = { stdout: value, stderr: Number(rest[0]) };
      this.#onListed.shift()?.(this.#listed);
      this.#listed = [];
    } else if (word === 'moves') {
      this.#unstopped.push({ pid: value, command: rest.join(' ') });
    } else if (word === 'held') {
      this.#onHeld.shift()?.({ named: this.#unstopped, count: value });
      this.#unstopped = [];
    } else if (word === 'empty') {
      this.#end();
      // The keeper stays until the runner ends it, so that a late command cannot lose its last reports.
      this.#control.end();
    }
  }

  /**
   * Cleans up after the keeper is gone. If it was killed, its family is not known any more. PID 1 then kills all
   * other processes of its container in one step; any other runner kills the processes that have not detached.
   */
  #ended(): void {
    this.#cancelDeadline();
    this.#cancelWake();
    if (!this.#isGone && this.pid) {
      try {
        process.kill(process.pid === 1 ? -1 : -this.pid, 'SIGKILL');
      } catch {
        // No process is left.
      }
      // A running program can kill its keeper before the keeper reports the start. The program ended together with its
      // keeper.
      this.#onStart(this);
    }
    this.#onFail(new StartError('keeper', 'ended'));
    this.#onExit({ code: null, signal: 'SIGKILL' });
    this.#end();
  }

  #end(): void {
    this.#isGone = true;
    for (const resolve of this.#onListed.splice(0)) resolve([]);
    for (const resolve of this.#onHeld.splice(0)) resolve(ALL_STOPPED);
    this.#onGone();
  }
}

/** Returns true also for a process that cannot be read. */
function isStopped(pid: number | undefined): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return /^\) [Tt]/.test(stat.slice(stat.lastIndexOf(')')));
  } catch {
    return true;
  }
}

function errnoName(errno: number): string {
  try {
    return getSystemErrorName(-errno);
  } catch {
    return `errno ${errno}`;
  }
}

function signalName(signal: number): string {
  return Object.entries(constants.signals).find(([, value]) => value === signal)?.[0] ?? `signal ${signal}`;
}
