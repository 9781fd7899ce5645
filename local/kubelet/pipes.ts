/**
 * Standard streams of a container as real pipes. Node's own `stdio: 'pipe'` gives sockets, on which `> /dev/stderr`
 * fails in every shell script. Named pipes, opened at both ends and then unlinked, are the only pipes that a Node
 * program can create.
 */

import { execFile } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

const { O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK } = constants;
const run = promisify(execFile);

/** Size of a batch, enough for four containers: a start rarely waits for `mkfifo` (some ms) then. */
const BATCH = 12;

export interface StandardStreams {
  /** Our ends of the streams. */
  stdin: Socket | undefined;
  stdout: Socket;
  stderr: Socket;
  /** The child's ends, for `spawn`. */
  childFds: [number | 'ignore', number, number];
  /** Closes the child's ends in this process; must be called after `spawn`, with or without success. */
  closeChildEnds(): void;
  /** Closes everything. */
  destroy(): void;
}

/** Creates standard streams; keeps a stock of named pipes under `folder`. */
export class PipeFactory {
  readonly #folder: string;
  readonly #stock: string[] = [];
  #made = 0;
  #making: Promise<void> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** Fills the stock, so that the next container does not wait. */
  prepare(): Promise<void> {
    if (this.#stock.length > BATCH / 2) return Promise.resolve();
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  async open(withStdin: boolean): Promise<StandardStreams> {
    while (this.#stock.length < 3) await this.prepare();
    const [input, output, error] = this.#stock.splice(0, 3) as [string, string, string];
    this.prepare().catch(() => {});
    const [childOut, stdout] = outputPipe(output);
    const [childErr, stderr] = outputPipe(error);
    const [childIn, stdin] = withStdin ? inputPipe(input) : (['ignore', undefined] as const);
    for (const path of [input, output, error]) rmSync(path);
    const childFds: [number | 'ignore', number, number] = [childIn, childOut, childErr];
    let childOpen = true;
    const closeChildEnds = () => {
      if (childOpen) for (const fd of childFds) if (typeof fd === 'number') closeSync(fd);
      childOpen = false;
    };
    return {
      stdin,
      stdout,
      stderr,
      childFds,
      closeChildEnds,
      destroy() {
        closeChildEnds();
        for (const socket of [stdin, stdout, stderr]) socket?.destroy();
      },
    };
  }

  async #make(): Promise<void> {
    const paths = Array.from({ length: BATCH }, () => join(this.#folder, String(this.#made++)));
    await run('mkfifo', ['-m', '600', ...paths]);
    this.#stock.push(...paths);
  }
}

function outputPipe(path: string): [number, Socket] {
  const ours = openSync(path, O_RDONLY | O_NONBLOCK);
  const childs = openSync(path, O_WRONLY);
  return [childs, new Socket({ fd: ours, readable: true, writable: false })];
}

function inputPipe(path: string): [number, Socket] {
  // An open of either end alone would block, or fail, until the other is open; an open for both does neither.
  const both = openSync(path, O_RDWR);
  const childs = openSync(path, O_RDONLY);
  const ours = openSync(path, O_WRONLY | O_NONBLOCK);
  closeSync(both);
  const stdin = new Socket({ fd: ours, readable: false, writable: true });
  // A child may close its stdin: input meant for it is dropped.
  stdin.on('error', () => {});
  return [childs, stdin];
}
