import { ControlDecoder, type ControlEvent } from '../core/frames/control.ts';
import { type Position, readyText } from '../core/frames/encode.ts';
import { type Bind, type Bound, type Bye, type Control, PACKED_LOG_PROTOCOL } from '../core/frames/messages.ts';
import { FrameSender } from '../core/frames/sender.ts';
import { VERSION } from '../core/program/version.ts';
import type { Clock, Random } from '../core/runtime.ts';
import type { Hidden } from '../core/text/hidden.ts';
import type { OutputDirectory } from './artifacts/artifacts.ts';
import type { Driver } from './drivers/driver.ts';
import type { Meter } from './limits/meter.ts';
import { bindProblem, isSameBind, keysOf } from './session/bind.ts';
import { BoundSession, type Refusal } from './session/session.ts';
import type { StateDirectory } from './state/archive.ts';
import { PodText } from './text/pod-text.ts';
import { AgentEvents } from './turn/agent-events.ts';

/** Parts that serve a session once it is known. */
export interface Equipment {
  driver: Driver;
  /** Meter of the driver's processes. */
  meter: Meter;
  state: StateDirectory;
  /** Absent: the controller takes no artifacts. */
  output?: OutputDirectory;
  /** Fills the directory of the agent's files; throws an Error that names what was wrong. */
  unpackFiles: (archives: readonly Buffer[]) => Promise<void>;
  /** Fills the directory of the Python environment; throws an Error that names what was wrong. */
  unpackEnvironment: (archive: { packed: Buffer; digest: string }) => Promise<void>;
  /** Texts and patterns to hide. */
  secrets: Hidden;
  shortSecrets?: Bound['shortSecrets'];
  containment: Bound['containment'];
  hardened: boolean;
}

export interface RunnerOptions {
  podUID: string;
  /** Protocol version that the runner speaks. */
  protocol: number;
  clock: Clock;
  random: Random;
  /** Writes to stdout; false asks to wait for `drained`. */
  writeFrames: (text: string) => boolean;
  /** Writes to stderr: readable text without secrets. */
  writeText: (text: string) => void;
  equip: (bind: Bind) => Equipment;
  /** Called when the runner is bound: from now on the session's processes may send requests. */
  onSession?: (session: BoundSession, secrets: Hidden) => void;
}

/** Carries out control lines and answers in frames, from an unbound pod to its end. */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #boot: string;
  readonly #control: ControlDecoder;
  #sender: FrameSender | undefined;
  #session: BoundSession | undefined;
  #bound: Bound | undefined;
  #blocked = false;
  #readyOwed = false;
  #onShutdown: ((graceMs: number) => void) | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#boot = options.random.bytes(16).toString('hex');
    this.#control = new ControlDecoder({ boot: this.#boot });
  }

  /** Calls back when the controller asks for shutdown. */
  onShutdown(fn: (graceMs: number) => void): void {
    this.#onShutdown = fn;
  }

  /** Takes bytes of stdin. */
  push(chunk: Buffer): void {
    this.#control.push(chunk, (event) => this.#event(event));
  }

  /** Called when stdout takes more. */
  drained(): void {
    this.#blocked = false;
    if (this.#readyOwed) this.#ready();
    this.#sender?.drained();
  }

  /** Stops the agent and sends `bye`. Resolves when all frames are given to stdout. */
  async stop(reason: Bye['reason'], message: string, graceMs: number): Promise<void> {
    await this.#session?.stop(graceMs);
    this.#sender?.send('bye', { reason, message });
  }

  #event(event: ControlEvent): void {
    if (event.type === 'empty') this.#ready();
    else if (event.type === 'stale') {
      const message = `epoch ${event.epoch} is over; this runner obeys ${this.#control.epoch}`;
      this.#refuse(event.n, { code: 'StaleEpoch', message });
    } else if (event.type === 'malformed') this.#refuse(event.n, { code: 'Malformed', message: event.problem });
    else this.#obey(event.control);
  }

  #ready(): void {
    this.#readyOwed = this.#blocked;
    if (this.#blocked) return;
    const { session, incarnation } = this.#session?.bind ?? {};
    this.#write(
      readyText({
        boot: this.#boot,
        protocol: this.#options.protocol,
        runnerVersion: VERSION,
        podUID: this.#options.podUID,
        ...(session && { session: session.uid }),
        ...(incarnation !== undefined && { incarnation }),
        lastSeq: this.#sender?.lastSeq ?? 0,
        epoch: this.#control.epoch,
        ...(this.#control.proof && { proof: this.#control.proof }),
      }),
    );
  }

  #obey(control: Control): void {
    let refusal: Refusal | undefined;
    try {
      if (control.kind === 'bind') refusal = this.#bind(control.message, control);
      else if (this.#session) refusal = this.#carryOut(this.#session, control);
    } catch (error) {
      const { message } = error as Error;
      refusal = { code: 'Malformed', message: `"${control.kind}" failed: ${message}` };
      if (!this.#session) this.#sayUnbound(message);
    }
    if (refusal) this.#refuse(control.n, refusal);
  }

  #carryOut(session: BoundSession, control: Exclude<Control, { kind: 'bind' }>): Refusal | undefined {
    const refuseLater = (refusal: Refusal) => this.#refuse(control.n, refusal);
    switch (control.kind) {
      case 'restore':
        return session.restore(control.message, control.binary, refuseLater);
      case 'files':
        return session.files(control.message, control.binary, refuseLater);
      case 'environment':
        return session.environment(control.message, control.binary, refuseLater);
      case 'turn':
      case 'approval':
        return session.turn(control.message, refuseLater);
      case 'cancel':
        return session.cancel(control.message);
      case 'snapshot':
        return session.snapshot(control.message, refuseLater);
      case 'ack':
        session.ack(control.message.through);
        break;
      case 'resend':
        this.#sender?.resend(control.message.from);
        break;
      case 'suspend':
        session.suspend(true);
        break;
      case 'resume':
        session.suspend(false);
        break;
      case 'ping':
        this.#sender?.send('pong', session.ping(control.n));
        break;
      case 'shutdown':
        this.#onShutdown?.(control.message.graceMs);
    }
    return undefined;
  }

  #bind(bind: Bind, { epoch, n, proof }: Position): Refusal | undefined {
    if (this.#session) {
      if (!isSameBind(this.#session.bind, bind)) {
        const message = `this pod belongs to session ${this.#session.bind.session.uid}`;
        return { code: 'AlreadyBound', message };
      }
      this.#sayBound();
      return undefined;
    }
    const problem = bindProblem(bind, this.#options.protocol);
    if (problem) this.#sayUnbound(problem);
    else this.#accept(bind, { epoch, n, ...(proof && { proof }) });
    return undefined;
  }

  /** Writes to the pod's log: without a session no frame can be sealed. */
  #sayUnbound(problem: string): void {
    this.#options.writeText(`[berth: the session cannot be bound: ${problem}]\n`);
  }

  #accept(bind: Bind, position: Position): void {
    const { protocol, clock, random, writeText, equip } = this.#options;
    const keys = keysOf(bind);
    const address = { session: bind.session.uid, incarnation: bind.incarnation };
    const { shortSecrets, containment, hardened, ...equipment } = equip(bind);
    const write = (text: string) => this.#write(text);
    const sender = new FrameSender({ ...address, boot: this.#boot, key: keys.up, random, write });
    this.#control.bound({ ...address, key: keys.down }, position);
    this.#sender = sender;
    const facts = { runnerVersion: VERSION, protocol, containment, hardened };
    this.#bound = { ...facts, ...(shortSecrets && { shortSecrets }) };
    this.#session = new BoundSession(bind, {
      ...equipment,
      sender,
      packsLogs: bind.protocol >= PACKED_LOG_PROTOCOL,
      events: new AgentEvents(equipment.secrets),
      stateKey: { session: bind.session.uid, keyId: bind.state.keyId, key: keys.state },
      podText: new PodText(writeText),
      clock,
      random,
    });
    this.#options.onSession?.(this.#session, equipment.secrets);
    this.#sayBound();
  }

  #sayBound(): void {
    if (this.#bound) this.#sender?.send('bound', this.#bound);
  }

  #write(text: string): boolean {
    this.#blocked = !this.#options.writeFrames(text);
    return !this.#blocked;
  }

  #refuse(n: number, refusal: Refusal): void {
    this.#sender?.send('refused', { n, ...refusal });
  }
}
