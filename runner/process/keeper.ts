import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { getSystemErrorName } from 'node:util';
import type { Clock } from '../../core/runtime.ts';
import { StartError } from '../errors.ts';
import type { Contained, Exit, ProcessSpec, StartProcess, Survivor } from './contained.ts';
import { spawnFailure } from './spawn.ts';

/** A keeper that has not said by then whether the program runs was stopped by that program. */
const START_DEADLINE_MS = 30_000;
/** A keeper that has not killed its family by then was itself stopped by it. */
const KILL_DEADLINE_MS = 3000;

/** Starts processes under `runner/keeper`; its README describes the protocol. */
export function keeperStart(keeper: string, clock: Clock): StartProcess {
  return (spec) => new Promise((resolve, reject) => new Kept(keeper, spec, clock, resolve, reject));
}

class Kept implements Contained {
  pid = 0;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exited: Promise<Exit>;
  readonly gone: Promise<void>;
  readonly #child: ChildProcess;
  readonly #control: Writable & Readable;
  readonly #clock: Clock;
  readonly #onStart: (kept: Contained) => void;
  readonly #onFail: (error: StartError) => void;
  #onExit!: (exit: Exit) => void;
  #onGone!: () => void;
  readonly #cancelDeadline: () => void;
  #isGone = false;
  #line = '';
  #listed: Survivor[] = [];
  #onListed: ((survivors: Survivor[]) => void)[] = [];

  constructor(
    keeper: string,
    spec: ProcessSpec,
    clock: Clock,
    onStart: (kept: Contained) => void,
    onFail: (error: StartError) => void,
  ) {
    this.#clock = clock;
    this.#onStart = onStart;
    this.#onFail = onFail;
    this.exited = new Promise((resolve) => {
      this.#onExit = resolve;
    });
    this.gone = new Promise((resolve) => {
      this.#onGone = resolve;
    });
    try {
      this.#child = spawn(keeper, [spec.file, spec.argv0, ...spec.args], {
        cwd: spec.cwd,
        env: spec.env,
        stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      });
    } catch (error) {
      throw spawnFailure(error);
    }
    this.stdin = this.#child.stdin as Writable;
    this.stdout = this.#child.stdout as Readable;
    this.stderr = this.#child.stderr as Readable;
    this.#control = this.#child.stdio[3] as Writable & Readable;
    this.#control.setEncoding('utf8');
    this.#control.on('data', (text: string) => this.#read(text));
    // The other end goes away with the keeper, which `close` tells.
    this.#control.on('error', () => {});
    this.#child.on('error', (error) => this.#onFail(spawnFailure(error)));
    this.#control.on('close', () => this.#ended());
    this.#cancelDeadline = clock.setTimer(START_DEADLINE_MS, () => this.#child.kill('SIGKILL'));
  }

  terminate(): void {
    this.#tell('T');
  }

  kill(): void {
    if (this.#isGone) return;
    this.#tell('K');
    this.#clock.setTimer(KILL_DEADLINE_MS, () => this.#killKeeper());
  }

  survivors(): Promise<Survivor[]> {
    if (this.#isGone) return Promise.resolve([]);
    return new Promise((resolve) => {
      this.#onListed.push(resolve);
      this.#tell('L');
    });
  }

  #tell(command: 'T' | 'K' | 'L'): void {
    if (!this.#isGone) this.#control.write(command);
  }

  /** The agent has the runner's uid and can stop its keeper. */
  #killKeeper(): void {
    if (!this.#isGone) this.#child.kill('SIGKILL');
  }

  #read(text: string): void {
    const lines = (this.#line + text).split('\n');
    this.#line = lines.pop() ?? '';
    for (const line of lines) this.#obey(line);
  }

  #obey(line: string): void {
    const [word, first = '', ...rest] = line.split(' ');
    const value = Number(first);
    if (word === 'start') {
      this.#cancelDeadline();
      this.pid = value;
      this.#onStart(this);
    } else if (word === 'fail') {
      this.#onFail(new StartError(first, errnoName(Number(rest[0]))));
    } else if (word === 'exit') {
      this.#onExit({ code: value, signal: null });
    } else if (word === 'signal') {
      this.#onExit({ code: null, signal: signalName(value) });
    } else if (word === 'left') {
      if (value !== this.pid) this.#listed.push({ pid: value, command: rest.join(' ') });
    } else if (word === 'listed') {
      this.#onListed.shift()?.(this.#listed);
      this.#listed = [];
    } else if (word === 'empty') {
      this.#end();
    }
  }

  /** The keeper is gone. When it was killed, those of the family that have not detached are killed here. */
  #ended(): void {
    this.#cancelDeadline();
    if (!this.#isGone && this.pid) {
      try {
        process.kill(-this.pid, 'SIGKILL');
      } catch {
        // Nobody of its process group is left.
      }
    }
    this.#onFail(new StartError('keeper', 'ended'));
    this.#onExit({ code: null, signal: 'SIGKILL' });
    this.#end();
  }

  #end(): void {
    this.#isGone = true;
    for (const resolve of this.#onListed) resolve([]);
    this.#onListed = [];
    this.#onGone();
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
