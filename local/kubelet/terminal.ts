/**
 * Commands on a terminal. Node can make none, so they run under Berth's keeper, whose README (runner/keeper) describes the
 * protocol.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { getSystemErrorName } from 'node:util';
import type { TerminalSize } from '../../core/enter/hello.ts';
import { type Launch, NOT_FOUND, notStarted, programOf } from './container.ts';

/** Type of terminal, as containerd sets it for a command with one. */
const TERM = 'xterm';

export interface Terminal {
  input: Writable;
  /** Ends when the command has ended, after its last byte. */
  output: Readable;
  /** Resolves with the command's exit code. */
  exited: Promise<number>;
  resize(size: TerminalSize): void;
  /** Takes the terminal away: the command gets SIGHUP. */
  hangUp(): void;
}

/**
 * Starts a command on a terminal whose size is not known yet; resolves when the program runs. Rejects with a `StartError`
 * worded like a container runtime's.
 */
export async function launchOnTerminal(keeper: string, how: Launch): Promise<Terminal> {
  const program = programOf(how);
  const { argv, workingDir, env } = how;
  const child = spawn(keeper, ['tty=0x0', programPath(program, workingDir, env.PATH), ...argv], {
    cwd: workingDir,
    env: { TERM, ...env },
    stdio: ['pipe', 'pipe', 'ignore', 'pipe'],
  });
  try {
    await once(child, 'spawn');
    const kept = new Kept(child);
    await kept.started;
    return kept;
  } catch (error) {
    throw notStarted(program, (error as Error).message);
  }
}

class Kept implements Terminal {
  readonly input: Writable;
  readonly output: Readable;
  /** Rejects with an Error that says why. */
  readonly started: Promise<void>;
  readonly exited: Promise<number>;
  readonly #control: Writable & Readable;
  readonly #begun = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<number>();
  #line = '';

  constructor(child: ChildProcess) {
    this.input = child.stdin as Writable;
    this.output = child.stdout as Readable;
    this.#control = child.stdio[3] as Writable & Readable;
    this.started = this.#begun.promise;
    this.exited = this.#ended.promise;
    // A command may end before its input: what is left of it is dropped.
    this.input.on('error', () => {});
    this.#control.on('error', () => {});
    this.#control.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    this.#control.on('close', () => {
      this.#begun.reject(new Error('its keeper ended'));
      // The keeper was killed, and its family with it.
      this.#ended.resolve(128 + 9);
    });
  }

  resize({ rows, columns }: TerminalSize): void {
    this.#tell(`W${rows} ${columns}\n`);
  }

  hangUp(): void {
    this.#tell('H');
  }

  #tell(command: string): void {
    if (this.#control.writable) this.#control.write(command);
  }

  #read(text: string): void {
    const lines = (this.#line + text).split('\n');
    this.#line = lines.pop() ?? '';
    for (const line of lines) {
      const [word, first, second] = line.split(' ');
      if (word === 'start') this.#begun.resolve();
      else if (word === 'fail') this.#begun.reject(new Error(`${first}: ${errnoText(Number(second))}`));
      else if (word === 'exit') this.#ended.resolve(Number(first));
      else if (word === 'signal') this.#ended.resolve(128 + Number(first));
      // What the command left running is gone, too: the keeper waits to be let go.
      else if (word === 'empty') this.#control.end();
    }
  }
}

/** Finds a program as a shell does. Throws a `StartError`. */
function programPath(program: string, workingDir: string, path = ''): string {
  const folders = program.includes('/') ? [''] : path.split(':');
  const found = folders.map((folder) => resolve(workingDir, folder, program)).find(isProgram);
  if (!found) throw notStarted(program, NOT_FOUND);
  return found;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function errnoText(errno: number): string {
  try {
    return getSystemErrorName(-errno);
  } catch {
    return `errno ${errno}`;
  }
}
