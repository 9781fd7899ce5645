import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { FrameDecoder, type FrameEvent } from '../../core/frames/decode.ts';
import { ASK_READY, bindText, controlText } from '../../core/frames/encode.ts';
import type {
  AgentSpec,
  Bind,
  ControlMessages,
  FrameKind,
  FrameOf,
  Ready,
  Restore,
  SessionControlKind,
} from '../../core/frames/messages.ts';
import { PROTOCOL_VERSION } from '../../core/frames/messages.ts';
import { frameKeys, openState, sealState, stateKey } from '../../core/frames/seal.ts';
import { type EventLine, parseEventLine } from '../../core/pod-log/agent-events.ts';
import { systemRandom } from '../../core/system.ts';
import { eventually } from './eventually.ts';
import { skipWithout } from './requires.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const KEEPER = join(CHECKOUT, 'build', 'keeper');

export const noKeeper = skipWithout('keeper', existsSync(KEEPER), 'there is no build/keeper: run make keeper');
export const hasKeeper = noKeeper === false;

/** Timeout of a turn where none matters, and limit of the wait for its result: long enough for a busy machine. */
const TURN_MS = 120_000;
const RESULT_MS = 150_000;

export interface HarnessOptions {
  agent?: Partial<AgentSpec>;
  /** Additional environment of the runner's process. */
  env?: Record<string, string>;
  /** Command of the runner; default: the runner's source with this Node. */
  command?: string[];
  bind?: Partial<Bind>;
  /** Harness whose keys and session are used: this one is a later incarnation. */
  after?: RunnerHarness;
  /** True to run without a keeper. */
  processGroup?: boolean;
  /** Owner of the runner's folder; the command must switch to this user. */
  owner?: number;
}

/** Plays the controller for one runner, which is a real process with pipes. `await using` ends it. */
export class RunnerHarness {
  readonly root = mkdtempSync(join(tmpdir(), 'berth-runner-'));
  readonly child: ChildProcess;
  readonly session: { name: string; namespace: string; uid: string };
  readonly master: Buffer;
  readonly podUID = randomUUID();
  readonly events: FrameEvent[] = [];
  readonly decoder = new FrameDecoder();
  readonly readies: Ready[] = [];
  stdout = '';
  /** The first 10 MB of stderr. */
  stderr = '';
  stderrBytes = 0;
  /** False: bytes of stdout are lost and do not reach the decoder. */
  listening = true;
  epoch = 1;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  readonly #options: HarnessOptions;
  readonly #text = new StringDecoder('utf8');
  #n = 0;
  #boot = '';
  #turns = 0;
  /** Last frame acknowledged by `startTurn`. */
  #acknowledged = 0;

  constructor(options: HarnessOptions = {}) {
    this.#options = options;
    this.session = options.after?.session ?? { name: 'sess', namespace: 'test', uid: randomUUID() };
    this.master = options.after?.master ?? randomBytes(32);
    if (options.owner !== undefined) chownSync(this.root, options.owner, options.owner);
    const [program = '', ...args] = options.command ?? [process.execPath, join(CHECKOUT, 'runner', 'main.ts')];
    this.child = spawn(program, args, {
      env: {
        PATH: process.env.PATH,
        BERTH_LOCAL_ROOT: this.root,
        BERTH_POD_UID: this.podUID,
        ...(options.processGroup ? { BERTH_KEEPER: 'none' } : {}),
        ...options.env,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.exited = new Promise((resolve) => this.child.once('exit', (code, signal) => resolve({ code, signal })));
    this.child.stdin?.on('error', () => {});
    this.child.stdout?.on('data', (chunk: Buffer) => {
      if (this.stdout.length < 1_000_000) this.stdout += chunk.toString('latin1');
      if (!this.listening) return;
      for (const event of this.decoder.push(chunk)) {
        this.events.push(event);
        if (event.type === 'ready') this.readies.push(event.ready);
      }
    });
    this.child.stderr?.on('data', (chunk: Buffer) => {
      this.stderrBytes += chunk.length;
      if (this.stderr.length < 10_000_000) this.stderr += this.#text.write(chunk);
    });
  }

  /** Starts a runner and binds it. */
  static async bound(options: HarnessOptions = {}): Promise<RunnerHarness> {
    const harness = new RunnerHarness(options);
    await harness.ready();
    harness.bind();
    await harness.frame('bound');
    return harness;
  }

  get stdin(): Writable {
    return this.child.stdin as Writable;
  }

  get pid(): number {
    return this.child.pid as number;
  }

  directory(name: 'state' | 'work' | 'tmp' | 'run'): string {
    return join(this.root, name);
  }

  write(text: string | Buffer): void {
    this.stdin.write(text);
  }

  /** Asks for `ready` and waits for the answer. */
  async ready(): Promise<Ready> {
    const before = this.readies.length;
    this.write(ASK_READY);
    await eventually(() => this.readies.length > before, { what: 'ready' });
    const ready = this.readies.at(-1) as Ready;
    this.#boot = ready.boot;
    return ready;
  }

  message(): Bind {
    const keys = frameKeys(this.master, { session: this.session.uid, podUID: this.podUID, boot: this.#boot });
    const { agent, bind } = this.#options;
    return {
      protocol: PROTOCOL_VERSION,
      session: this.session,
      incarnation: 1,
      keys: { up: keys.up.toString('base64'), down: keys.down.toString('base64') },
      state: { keyId: 'k1', key: stateKey(this.master, this.session.uid).toString('base64') },
      agent: {
        driver: 'Command',
        command: ['/bin/bash', '-c'],
        args: ['true'],
        env: [],
        input: 'Stdin',
        result: 'Envelope',
        ...agent,
      },
      ...bind,
    };
  }

  bind(message = this.message()): void {
    const up = Buffer.from(message.keys.up, 'base64');
    this.decoder.setChannel({ session: this.session.uid, incarnation: message.incarnation, boot: this.#boot, key: up });
    for (const line of bindText(this.#boot, this.#position(), message)) this.write(line);
  }

  /** Returns the lines of a control message and counts it as one. */
  lines<K extends SessionControlKind>(kind: K, message: ControlMessages[K], binary?: Buffer): string {
    const { incarnation, keys } = this.message();
    const key = Buffer.from(keys.down, 'base64');
    const channel = { session: this.session.uid, incarnation, boot: this.#boot, key, random: systemRandom };
    return [...controlText(channel, this.#position(), kind, message, binary)].join('');
  }

  /** Sends a control message and returns its `n`. */
  send<K extends SessionControlKind>(kind: K, message: ControlMessages[K], binary?: Buffer): number {
    this.write(this.lines(kind, message, binary));
    return this.#n;
  }

  /** Starts a turn and returns its uid. A new turn begins once the results that have arrived are acknowledged. */
  startTurn(input: unknown = null, timeoutMs = TURN_MS, turn?: string, attempt = 1): string {
    if (turn === undefined) this.acknowledgeResults();
    return this.#start(input, timeoutMs, turn ?? randomUUID(), attempt);
  }

  /** Acknowledges everything through the last result that has arrived. */
  acknowledgeResults(): void {
    const through = this.frames('result').at(-1)?.seq;
    if (through !== undefined && through > this.#acknowledged) this.send('ack', { through });
    this.#acknowledged = Math.max(this.#acknowledged, through ?? 0);
  }

  #start(input: unknown, timeoutMs: number, turn: string, attempt: number): string {
    this.#turns += 1;
    const index = this.#turns;
    this.send('turn', { turn, name: `turn-${index}`, index, attempt, input, timeoutMs });
    return turn;
  }

  /** Runs a turn to its result. */
  async runTurn(input: unknown = null, timeoutMs = TURN_MS): Promise<FrameOf<'result'>['message']> {
    return this.result(this.startTurn(input, timeoutMs));
  }

  async result(turn: string, timeoutMs = RESULT_MS): Promise<FrameOf<'result'>['message']> {
    return (await this.frame('result', (frame) => frame.message.turn === turn, timeoutMs)).message;
  }

  /** Returns all frames of a kind that have arrived so far. */
  frames<K extends FrameKind>(kind: K): FrameOf<K>[] {
    return this.events.flatMap((event) =>
      event.type === 'frame' && event.frame.kind === kind ? [event.frame as FrameOf<K>] : [],
    );
  }

  /** Events of the agent in the readable text so far. */
  agentEvents(): EventLine[] {
    return this.stderr.split('\n').flatMap((line) => parseEventLine(line) ?? []);
  }

  /** Waits for a frame. Earlier output of the runner on stderr has been read by then, too. */
  async frame<K extends FrameKind>(
    kind: K,
    matches: (frame: FrameOf<K>) => boolean = () => true,
    timeoutMs = 60_000,
  ): Promise<FrameOf<K>> {
    try {
      const frame = await eventually(() => this.frames(kind).find(matches), { timeoutMs, what: `frame ${kind}` });
      // The frame may have arrived while this process was about to read stdout; stderr has not been read since then.
      await setImmediate();
      return frame;
    } catch (error) {
      throw new Error(`no frame ${kind}; stderr: ${this.stderr.slice(-2000)}`, { cause: error });
    }
  }

  async refusal(n: number): Promise<FrameOf<'refused'>['message']> {
    return (await this.frame('refused', (frame) => frame.message.n === n)).message;
  }

  /** Decrypts a state frame and returns the packed bytes of the plain archive. */
  openState(frame: FrameOf<'state'>): Buffer {
    const label = { session: this.session.uid, keyId: frame.message.keyId };
    const packed = openState(stateKey(this.master, this.session.uid), frame.binary, label);
    assert.ok(packed, 'the state opens with the session’s key');
    return packed;
  }

  sealState(packed: Buffer): Buffer {
    return sealState(
      stateKey(this.master, this.session.uid),
      packed,
      { session: this.session.uid, keyId: 'k1' },
      systemRandom,
    );
  }

  restore(message: Restore, sealed: Buffer): number {
    return this.send('restore', message, sealed);
  }

  /**
   * Returns the living processes whose environment names this runner's folder, without the keepers: the agent's,
   * however they detached.
   */
  processes(): { pid: number; command: string }[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && Number(name) !== this.pid)
      .flatMap((name) => {
        try {
          if (!readFileSync(`/proc/${name}/environ`, 'utf8').includes(this.root)) return [];
          const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
          return command && !command.startsWith(KEEPER) ? [{ pid: Number(name), command }] : [];
        } catch {
          return [];
        }
      });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGTERM');
    const giveUp = setTimeout(() => this.child.kill('SIGKILL'), 30_000);
    await this.exited;
    clearTimeout(giveUp);
    // Remaining processes of the agent may still write.
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10 });
  }

  #position(): { epoch: number; n: number } {
    this.#n += 1;
    return { epoch: this.epoch, n: this.#n };
  }
}
