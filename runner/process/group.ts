import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import type { Limits } from '../../core/frames/messages.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Overrun } from '../limits/overrun.ts';
import { StartError } from '../system/errors.ts';
import { ALL_STOPPED, type Contained, type StartProcess, type Survivor, type Unstopped } from './contained.ts';
import type { Exit } from './exit.ts';
import { spawnFailure } from './spawn.ts';

const LOOK_AGAIN_MS = 50;

/**
 * Replacement where there is no keeper: the family is the process's group. A descendant that makes a session of its own
 * gets away, and the runner reports that by `containment` in `bound`. Limits cannot be set here: where one is required
 * no program is started, and none with a terminal.
 */
export function groupStart(clock: Clock, limits: Limits): StartProcess {
  return (spec) =>
    new Promise((resolve, reject) => {
      if (limits.required) {
        reject(new StartError('limit sandbox', 'NoKeeper'));
        return;
      }
      if (spec.tty) {
        reject(new StartError('terminal', 'NoKeeper'));
        return;
      }
      let child: ChildProcess;
      try {
        child = spawn(spec.file, spec.args, { argv0: spec.argv0, cwd: spec.cwd, env: spec.env, detached: true });
      } catch (error) {
        reject(spawnFailure(error));
        return;
      }
      child.once('error', (error) => reject(spawnFailure(error)));
      child.once('spawn', () => resolve(new Group(child, clock)));
    });
}

class Group implements Contained {
  readonly pid: number;
  readonly usage = undefined;
  readonly written = undefined;
  killing = false;
  overrun: Overrun | undefined;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exited: Promise<Exit>;
  readonly gone: Promise<void>;
  readonly #clock: Clock;

  constructor(child: ChildProcess, clock: Clock) {
    this.#clock = clock;
    this.pid = child.pid as number;
    this.stdin = child.stdin as Writable;
    this.stdout = child.stdout as Readable;
    this.stderr = child.stderr as Readable;
    this.exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
    this.gone = this.exited.then(() => this.#emptied());
  }

  onUsage(): void {}

  resize(): void {}

  signal(name: NodeJS.Signals): void {
    this.#signal(name);
  }

  terminate(): void {
    this.#signal('SIGTERM');
    this.#signal('SIGCONT');
  }

  kill(): void {
    this.killing = true;
    this.#signal('SIGKILL');
  }

  /** Does nothing: a process that has left the group cannot be found, and would go on writing. */
  async hold(): Promise<Unstopped> {
    return ALL_STOPPED;
  }

  release(): void {}

  async survivors(): Promise<Survivor[]> {
    if (!this.#signal(0)) return [];
    return groupMembers(this.pid).filter(({ pid }) => pid !== this.pid);
  }

  /** Reports whether any process of the group is left to signal. */
  #signal(signal: NodeJS.Signals | 0): boolean {
    try {
      process.kill(-this.pid, signal);
      return true;
    } catch {
      return false;
    }
  }

  async #emptied(): Promise<void> {
    while (this.#signal(0)) await new Promise<void>((resolve) => this.#clock.setTimer(LOOK_AGAIN_MS, resolve));
  }
}

/** Returns the group itself where there is no /proc to list its processes. */
function groupMembers(group: number): Survivor[] {
  let pids: number[];
  try {
    pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [{ pid: group, command: 'process group' }];
  }
  const members: Survivor[] = [];
  for (const pid of pids) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      // A zombie with more threads than its dead main thread is alive, and has no command line any more.
      if (Number(fields[2]) !== group || (fields[0] === 'Z' && Number(fields[17]) <= 1)) continue;
      const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      members.push({ pid, command: command || name });
    } catch {
      // The process ended meanwhile.
    }
  }
  return members;
}
