import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { type EnterFrame, encodeFrame, encodeJson, FrameDecoder, type FrameKind } from '../../core/enter/frames.ts';
import { processesWith } from './processes.ts';
import { skipWithout } from './requires.ts';

export const HELPER = join(import.meta.dirname, '..', '..', 'build', 'bin', 'berth-enter');
export const noHelper = skipWithout('keeper', existsSync(HELPER), 'there is no build/bin/berth-enter: run make keeper');

/** A helper as the kubelet starts it, with a runner that the test plays. `await using` ends both. */
export class HelperRun {
  readonly child: ChildProcess;
  readonly frames: EnterFrame[] = [];
  readonly exited: Promise<number | null>;
  readonly ended: Promise<void>;
  stderr = '';
  readonly #decoder = new FrameDecoder();

  constructor(podUID: string, env: Record<string, string> = { BERTH_LOCAL_ROOT: '/x' }, helper = HELPER) {
    this.child = spawn(helper, [], { env: { BERTH_POD_UID: podUID, ...env }, stdio: 'pipe' });
    this.exited = new Promise((resolve) => this.child.once('exit', resolve));
    this.ended = once(this.child.stdout as NonNullable<ChildProcess['stdout']>, 'end').then(() => {});
    this.child.stdin?.on('error', () => {});
    this.child.stdout?.on('data', (chunk: Buffer) => this.frames.push(...this.#decoder.push(chunk)));
    this.child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.stderr += chunk;
    });
  }

  send(kind: FrameKind, ...parts: Buffer[]): void {
    this.child.stdin?.write(encodeFrame(kind, ...parts));
  }

  hello(hello: object = {}): void {
    this.child.stdin?.write(encodeJson('hello', hello));
  }

  /** The frames that came, until the helper has ended. */
  async all(): Promise<EnterFrame[]> {
    await this.ended;
    return this.frames;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }
}

/** A listener in the runner's place; `connected` gives its next connection. */
export class FakeRunner {
  readonly podUID = randomUUID();
  readonly #server: Server;
  readonly #waiting: ((socket: Socket) => void)[] = [];
  readonly #sockets: Socket[] = [];

  private constructor() {
    this.#server = createServer((socket) => {
      socket.on('error', () => {});
      this.#sockets.push(socket);
      this.#waiting.shift()?.(socket);
    });
  }

  static async listening(): Promise<FakeRunner> {
    const runner = new FakeRunner();
    runner.#server.listen(`\0berth/${runner.podUID}`);
    await once(runner.#server, 'listening');
    return runner;
  }

  connected(): Promise<Socket> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Answers the next hello with an order. */
  async order(...fields: (string | number)[]): Promise<Socket> {
    const socket = await this.connected();
    await once(socket, 'data');
    socket.write(encodeFrame('order', Buffer.from(fields.map((field) => `${field}\0`).join(''))));
    return socket;
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

/** Returns the helpers that the embedded cluster with this home has started. */
export function helpersOf(home: string): number[] {
  return processesWith(home).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('berth-enter');
    } catch {
      return false;
    }
  });
}
