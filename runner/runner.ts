import { FRAMES } from '../core/frames/catalogue.ts';
import { ControlDecoder, type ControlEvent } from '../core/frames/control.ts';
import { type Position, readyText } from '../core/frames/encode.ts';
import type { Bind, Bound, Bye, Control, ControlOf, SessionControlKind } from '../core/frames/messages.ts';
import { FrameSender } from '../core/frames/sender.ts';
import { VERSION } from '../core/program/version.ts';
import type { Clock, Random } from '../core/runtime.ts';
import type { Hidden } from '../core/text/hidden.ts';
import { bindProblem, isSameBind, keysOf } from './session/bind.ts';
import type { SessionParts } from './session/parts.ts';
import { BoundSession, type Refusal, type Refuse } from './session/session.ts';
import { PodText } from './text/pod-text.ts';
import { AgentEvents } from './turn/agent-events.ts';

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
  partsFor: (bind: Bind) => SessionParts;
  /** Handler of the binding. From then on the session's processes may send requests. */
  onSession?: (session: BoundSession, secrets: Hidden) => void;
}

/** What a bound runner has. */
interface Served {
  session: BoundSession;
  sender: FrameSender;
  bound: Bound;
}

interface Handling extends Served {
  /** Refuses the line for a reason found after it was accepted. */
  refuse: Refuse;
  shutDown: ((graceMs: number) => void) | undefined;
}

/** Carries out a control line; returns why it is refused, if it is. */
type Handler<K extends SessionControlKind> = (line: ControlOf<K>, to: Handling) => Refusal | undefined;

const HANDLERS: { readonly [K in SessionControlKind]: Handler<K> } = {
  restore: ({ message, binary }, { session, refuse }) => session.restore(message, binary, refuse),
  files: ({ message, binary }, { session, refuse }) => session.files(message, binary, refuse),
  environment: ({ message, binary }, { session, refuse }) => session.environment(message, binary, refuse),
  turn: ({ message }, { session, refuse }) => session.turn(message, refuse),
  approval: ({ message }, { session, refuse }) => session.turn(message, refuse),
  cancel: ({ message }, { session }) => session.cancel(message),
  snapshot: ({ message }, { session, refuse }) => session.snapshot(message, refuse),
  ack: ({ message }, { session }) => void session.ack(message.through),
  resend: ({ message }, { sender }) => void sender.resend(message.from),
  suspend: (_, { session }) => void session.suspend(true),
  resume: (_, { session }) => void session.suspend(false),
  ping: ({ n }, { session, sender }) => void sender.send('pong', session.ping(n)),
  shutdown: ({ message }, { shutDown }) => void shutDown?.(message.graceMs),
};

function carryOut<K extends SessionControlKind>(line: ControlOf<K>, to: Handling): Refusal | undefined {
  const handle: Handler<K> = HANDLERS[line.kind];
  return handle(line, to);
}

/** Carries out control lines and answers in frames, from an unbound pod to its end. */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #boot: string;
  readonly #control: ControlDecoder;
  #served: Served | undefined;
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

  /** Goes on, because stdout takes more. */
  drained(): void {
    this.#blocked = false;
    if (this.#readyOwed) this.#ready();
    this.#served?.sender.drained();
  }

  /** Stops the agent and sends `bye`. Resolves when all frames are given to stdout. */
  async stop(reason: Bye['reason'], message: string, graceMs: number): Promise<void> {
    await this.#served?.session.stop(graceMs);
    this.#served?.sender.send('bye', { reason, message });
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
    const { session, incarnation } = this.#served?.session.bind ?? {};
    this.#write(
      readyText({
        boot: this.#boot,
        protocol: this.#options.protocol,
        runnerVersion: VERSION,
        podUID: this.#options.podUID,
        ...(session && { session: session.uid }),
        ...(incarnation !== undefined && { incarnation }),
        lastSeq: this.#served?.sender.lastSeq ?? 0,
        epoch: this.#control.epoch,
        ...(this.#control.proof && { proof: this.#control.proof }),
      }),
    );
  }

  #obey(control: Control): void {
    let refusal: Refusal | undefined;
    try {
      if (control.kind === 'bind') refusal = this.#bind(control.message, control);
      else if (this.#served) {
        const refuse = (later: Refusal) => this.#refuse(control.n, later);
        refusal = carryOut(control, { ...this.#served, refuse, shutDown: this.#onShutdown });
      }
    } catch (error) {
      const { message } = error as Error;
      refusal = { code: 'Malformed', message: `"${control.kind}" failed: ${message}` };
      if (!this.#served) this.#sayUnbound(message);
    }
    if (refusal) this.#refuse(control.n, refusal);
  }

  #bind(bind: Bind, { epoch, n, proof }: Position): Refusal | undefined {
    const known = this.#served?.session.bind;
    const problem = known ? undefined : bindProblem(bind, this.#options.protocol);
    if (known && !isSameBind(known, bind)) {
      return { code: 'AlreadyBound', message: `this pod belongs to session ${known.session.uid}` };
    }
    if (problem) this.#sayUnbound(problem);
    else if (!known) this.#accept(bind, { epoch, n, ...(proof && { proof }) });
    this.#sayBound();
    return undefined;
  }

  /** Writes to the pod's log: without a session no frame can be sealed. */
  #sayUnbound(problem: string): void {
    this.#options.writeText(`[berth: the session cannot be bound: ${problem}]\n`);
  }

  #accept(bind: Bind, position: Position): void {
    const { protocol, clock, random, writeText, partsFor } = this.#options;
    const keys = keysOf(bind);
    const address = { session: bind.session.uid, incarnation: bind.incarnation };
    const { shortSecrets, containment, hardened, ...parts } = partsFor(bind);
    const write = (text: string) => this.#write(text);
    const sender = new FrameSender({ ...address, boot: this.#boot, key: keys.up, random, write });
    this.#control.bound({ ...address, key: keys.down }, position);
    const session = new BoundSession(bind, {
      ...parts,
      sender,
      packsLogs: bind.protocol >= FRAMES.log.packedSince,
      events: new AgentEvents(parts.secrets),
      stateKey: { session: bind.session.uid, keyId: bind.state.keyId, key: keys.state },
      podText: new PodText(writeText),
      clock,
      random,
    });
    const bound = { runnerVersion: VERSION, protocol, containment, hardened, ...(shortSecrets && { shortSecrets }) };
    this.#served = { session, sender, bound };
    this.#options.onSession?.(session, parts.secrets);
  }

  #sayBound(): void {
    if (this.#served) this.#served.sender.send('bound', this.#served.bound);
  }

  #write(text: string): boolean {
    this.#blocked = !this.#options.writeFrames(text);
    return !this.#blocked;
  }

  #refuse(n: number, refusal: Refusal): void {
    this.#served?.sender.send('refused', { n, ...refusal });
  }
}
