import { gunzipSync } from 'node:zlib';
import type { Bind } from '../../../core/frames/messages.ts';
import { open } from '../../../core/frames/seal.ts';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import type { AttachOptions, PodStream, StreamEnd } from '../../../core/kube/types.ts';
import { hiddenBy } from '../../../core/text/hidden.ts';
import { answerFor } from '../../../runner/agent-socket/answer.ts';
import type { Answer } from '../../../runner/agent-socket/socket.ts';
import type { Visit } from '../../../runner/enter/visit.ts';
import { Meter } from '../../../runner/limits/meter.ts';
import { Runner } from '../../../runner/runner.ts';
import type { BoundSession } from '../../../runner/session/session.ts';
import { Channel } from '../channel.ts';
import type { Observer } from '../observer.ts';
import type { Dice } from '../random.ts';
import { Process, type Scheduler } from '../scheduler.ts';
import { buildPlan } from '../users/environments.ts';
import { CONTENT } from '../users/files.ts';
import { type Plan, type Run, simulatedDriver } from './agent.ts';
import { ClientWork } from './client-work.ts';
import type { Exit, KeptFrame, SimContainer } from './container.ts';
import { ContainerLog } from './container-log.ts';
import { hostileText, type TrueReady } from './hostile-text.ts';
import { OutputContent } from './output-content.ts';
import { WITHOUT_ARTIFACTS } from './runner-image.ts';
import { lastRun, StateContent } from './state-content.ts';
import { WritingFamilies } from './writing-families.ts';

/** Grace periods from SIGTERM to the agent's end, and then to the runner's own end, as in `runner/main.ts`. */
const SIGNAL_GRACE_MS = 4000;
/** Exit code after SIGTERM. */
const TERMINATED = 128 + 15;
const EXIT_MS = 4000;

export interface ContainerOptions {
  name: string;
  podUID: string;
  /** Protocol version of the runner. */
  protocol: number;
  /** Report of the runner that it is hardened. */
  isHardened: boolean;
  scheduler: Scheduler;
  dice: Dice;
  observer: Observer;
  /** Returns the probability that a stream breaks and loses its data. */
  breaks: () => number;
  /** Returns the probability that the pod does not pass a text of its runner on as it is. */
  garbled: () => number;
  /** Dice of a process of the pod that prints hostile text on the container's stdout; absent: there is none. */
  hostile?: Dice;
  onExit(exit: Exit): void;
}

const KEPT = /"seq":(\d+),"kind":"(result|approval)","part":(\d+),"parts":(\d+)/;

/** Text of the runner, with the frames that end in it. */
interface Printed {
  text: string;
  /** The text is not as the runner has printed it. */
  isBroken?: true;
  frames: { seq: number; kind: string; printedAt: number }[];
}

interface Stream {
  options: AttachOptions;
  controller: Process;
  up: Channel<Printed>;
  down: Channel<Buffer>;
  end(end: StreamEnd): void;
}

/** The container of one pod: the runner's real code as a simulated process, with streams that can break, and a log. */
export class Container implements SimContainer {
  readonly process: Process;
  readonly podUID: string;
  readonly protocol: number;
  readonly isHardened: boolean;
  readonly content = new StateContent();
  readonly log: ContainerLog;
  bind: Bind | undefined;
  exit: Exit | undefined;
  isHardToRead = false;
  hasGarbled = false;
  suspendedAt: number | undefined;
  work: ClientWork | undefined;
  #session: BoundSession | undefined;
  /** True while a control line of an epoch that is over is handled. */
  #staleLine = false;
  #highestEpoch = 0;
  #lastStarted: Run | undefined;
  #lastEnded: Run | undefined;
  /** Frame number → the frame that was printed whole and not acknowledged. */
  readonly #kept = new Map<number, KeptFrame>();
  /** Frame number → when the frame was printed whole for the first time, virtual milliseconds. */
  readonly #printedAt = new Map<number, number>();
  /** Run → the texts that completed the printing of its result. */
  readonly #results = new Map<Run, Set<string>>();
  #acknowledged = 0;
  /** Contents of the agent's files. */
  #files: readonly string[] = [];
  /** Run that has built the environment. */
  #environment: string | undefined;
  /** BERTH_OUTPUT_DIR; undefined where the runner has none. */
  #output: OutputContent | undefined;
  #socket: Answer = async () => ({ ok: false, error: { code: 'NoTurn', message: 'not bound yet' } });
  /** Starts a family that writes to the state; known once the runner is bound. */
  #startWriter: () => () => void = () => () => {};
  #stopping = false;
  readonly #options: ContainerOptions;
  readonly #garbling: Dice;
  readonly #runner: Runner;
  readonly #streams = new Set<Stream>();
  /** The runner's last `ready`, decoded. */
  #ready: TrueReady | undefined;

  constructor(options: ContainerOptions) {
    const { scheduler, dice, observer, podUID, protocol, isHardened } = options;
    this.#options = options;
    this.#garbling = options.dice.stream('garbled');
    this.podUID = podUID;
    this.protocol = protocol;
    this.isHardened = isHardened;
    this.log = new ContainerLog(scheduler);
    this.process = new Process(options.name, scheduler);
    const { process, content } = this;
    const writers = new WritingFamilies(process);
    const driver = simulatedDriver({
      process,
      content,
      output: () => this.#output,
      startMs: () => dice.skewed(1, 60),
      socket: (request, gone) => this.#socket(request, gone),
      begin: ({ turn, approval, restored }) => {
        const bind = this.bind as Bind;
        const run: Run = {
          turn: turn.turn,
          attempt: turn.attempt,
          podUID,
          sessionUID: bind.session.uid,
          incarnation: bind.incarnation,
          decision: approval?.requestId,
          restored: restored !== undefined,
          timeoutMs: turn.timeoutMs,
          stallMs: turn.stallMs ?? Number.POSITIVE_INFINITY,
          isRunnerless: false,
          plan: bind.agent.command.includes('--uv') ? buildPlan(turn.input, dice) : (turn.input as Plan),
          startedAt: process.monotonic(),
          ranMs: 0,
          printed: '',
          files: this.#files,
          environment: this.#environment,
          left: new Map(),
          from: content.digest,
          asked: [],
          changed: [],
        };
        this.#lastStarted = run;
        observer.runStarted(run, this);
        return run;
      },
      told: (run, decided) => observer.told(run, decided, this),
      talked: (run) => observer.talked(run),
      startWriter: () => this.#startWriter(),
      touched: () => observer.touched((this.bind as Bind).session.uid),
      end: (run) => {
        this.#lastEnded = run;
        observer.runEnded(run, this);
      },
    });
    this.#runner = new Runner({
      podUID,
      protocol,
      clock: process,
      random: dice,
      writeFrames: (text) => this.#print(text),
      writeText: (text) => this.log.push(text),
      partsFor: (bind) => {
        this.bind = bind;
        content.persistent = bind.persistence?.state !== false;
        content.maxBytes = bind.persistence?.maxStateBytes ?? Number.POSITIVE_INFINITY;
        if (bind.artifacts && protocol !== WITHOUT_ARTIFACTS) this.#output = new OutputContent();
        const output = this.#output;
        observer.bound(bind, this);
        if (this.#staleLine) observer.obeyed('bind', this);
        const meter = new Meter({ limits: { required: false }, together: false, clock: process });
        this.#startWriter = () => writers.start(meter);
        const onActivity = () => observer.clientsWorked(bind.session.uid, this);
        const work = new ClientWork({ process, meter, dice, onActivity });
        this.work = work;
        return {
          driver,
          commands: work.commands,
          meter,
          state: {
            pack: async (maxBytes = content.maxBytes) => {
              const isTorn = await writers.read(dice.skewed(0.5, 20));
              observer.packed(content, this);
              return content.packWithin(maxBytes, isTorn);
            },
            unpack: async (packed) => {
              await process.sleep(dice.skewed(0.5, 20));
              content.unpack(packed);
            },
          },
          ...(output && {
            output: {
              empty: () => output.empty(),
              collect: async () => {
                if (!output.isEmpty) await process.sleep(dice.skewed(0.5, 20));
                return output.collect();
              },
            },
          }),
          unpackFiles: async (archives) => {
            await process.sleep(dice.skewed(0.5, 20));
            this.#files = archives.map((archive) => CONTENT.exec(gunzipSync(archive).toString('latin1'))?.[0] ?? '');
          },
          unpackEnvironment: async ({ packed }) => {
            await process.sleep(dice.skewed(0.5, 20));
            // As everything else, it goes well once the faults have ended.
            if (this.#options.breaks() > 0 && dice.chance(0.05))
              throw Object.assign(new Error('another Python'), { code: 'EnvironmentMismatch' });
            this.#environment = lastRun(packed);
          },
          secrets: hiddenBy({}),
          containment: 'Keeper',
          hardened: isHardened,
        };
      },
      onSession: (session) => {
        this.#session = session;
        if (this.work) session.keptBusyBy(this.work.transfers);
        this.#socket = answerFor(session);
        this.#overhear(session);
      },
    });
    this.#runner.onShutdown((graceMs) => this.#leave('Shutdown', graceMs));
    if (options.hostile) this.#disturb(options.hostile);
  }

  enter(visit: Visit): void {
    if (this.#session) this.work?.serve(visit, this.#session);
  }

  terminate(): void {
    this.#leave('Signal', SIGNAL_GRACE_MS);
  }

  die(exit: Exit): void {
    if (this.exit) return;
    this.exit = exit;
    this.process.kill();
    this.log.ended();
    this.cut(exit.code === 0 || exit.code === TERMINATED ? 'remote' : 'connection');
    this.#options.onExit(exit);
  }

  cut(by: StreamEnd['by']): void {
    for (const stream of [...this.#streams]) stream.end({ by });
  }

  attach(options: AttachOptions, controller: Process): PodStream {
    const { scheduler, dice, observer } = this.#options;
    if (this.exit) throw new ApiError({ code: 400, reason: 'BadRequest', message: 'container is not running' });
    const { promise, resolve } = Promise.withResolvers<StreamEnd>();
    const up = new Channel<Printed>(
      scheduler,
      controller,
      `frames of ${this.process.name}`,
      ({ text, isBroken, frames }, tookMs) => {
        const onActivity = text.includes('"kind":"pong"');
        if (!isBroken) observer.heard(this, { process: controller.name, agoMs: tookMs, onActivity, frames });
        options.onStdout?.(Buffer.from(text));
      },
    );
    const down = new Channel<Buffer>(scheduler, this.process, `lines of ${controller.name}`, (data) =>
      this.#read(data),
    );
    const stream: Stream = {
      options,
      controller,
      up,
      down,
      end: (end) => {
        if (!this.#streams.delete(stream)) return;
        observer.detached(this, controller.name);
        // Data that was sent before an orderly close still arrives.
        if (end.by !== 'local') down.cut();
        up.cut();
        if (end.by === 'local') resolve(end);
        else controller.after(dice.skewed(0.2, 5), `attach ends`, () => resolve(end));
      },
    };
    this.#streams.add(stream);
    observer.attached(this, controller.name);
    controller.onDeath(() => stream.end({ by: 'local' }));
    options.signal?.addEventListener('abort', () => stream.end({ by: 'local' }), { once: true });
    return {
      write: async (data) => {
        if (!this.#streams.has(stream)) throw new TransportError('the attach has ended');
        this.#mishap(stream, down);
        down.send(Buffer.from(data), dice.skewed(0.1, 5));
      },
      closeStdin: () => {},
      pause: () => up.pause(),
      resume: () => up.resume(),
      close: () => stream.end({ by: 'local' }),
      closed: promise,
    };
  }

  /** Reports the control lines that the runner obeys, at the moment at which it does. */
  #overhear(session: BoundSession): void {
    const { observer } = this.#options;
    const ack = session.ack.bind(session);
    session.ack = (through) => {
      for (const [seq, frame] of this.#kept) {
        if (seq > through) continue;
        observer.acknowledged(frame, this);
        this.#kept.delete(seq);
        this.#acknowledged = Math.max(this.#acknowledged, seq);
      }
      if (this.#staleLine) observer.obeyed('ack', this);
      ack(through);
    };
    const turn = session.turn.bind(session);
    session.turn = (...line) => {
      if (this.#staleLine) observer.obeyed('turn', this);
      return turn(...line);
    };
    const cancel = session.cancel.bind(session);
    session.cancel = (line) => {
      if (this.#staleLine) observer.obeyed('cancel', this);
      return cancel(line);
    };
    const suspend = session.suspend.bind(session);
    session.suspend = (suspended) => {
      if (this.#staleLine) observer.obeyed(suspended ? 'suspend' : 'resume', this);
      this.suspendedAt = suspended ? this.process.monotonic() : undefined;
      suspend(suspended);
    };
  }

  /** Hands a control line to the runner. Its immediate effects come before any other event of this container. */
  #read(data: Buffer): void {
    const epoch = Number(/"epoch":(\d+)/.exec(data.toString('latin1'))?.[1] ?? 0);
    this.#staleLine = epoch > 0 && epoch < this.#highestEpoch;
    if (epoch > this.#highestEpoch && this.#understands(data)) this.#highestEpoch = epoch;
    this.#runner.push(data);
  }

  /** Reports whether a control line is sealed with the runner's key. After a rotation a leader tries the new master key first. */
  #understands(data: Buffer): boolean {
    const [, header = '', body = ''] = /(\{.*\}) (\S+)/.exec(data.toString('latin1')) ?? [];
    if (!this.bind || header.includes('"kind":"bind"')) return true;
    const down = Buffer.from(this.bind.keys.down, 'base64');
    return open(down, Buffer.from(body, 'base64'), Buffer.from(header)) !== undefined;
  }

  #print(text: string): boolean {
    const { dice } = this.#options;
    this.log.push(text);
    const [, ready] = /"kind":"ready".*\n(.*)\n/.exec(text) ?? [];
    if (ready) this.#ready = JSON.parse(Buffer.from(ready, 'base64').toString()) as TrueReady;
    this.#keep(text);
    const printed = { text, frames: this.#framesIn(text) };
    for (const stream of [...this.#streams]) {
      this.#mishap(stream, stream.up);
      for (const one of this.#passedOn(printed)) stream.up.send(one, dice.skewed(0.1, 5));
    }
    if (!dice.chance(0.02)) return true;
    this.process.after(dice.skewed(0.1, 50), 'stdout drained', () => this.#runner.drained());
    return false;
  }

  /** Returns what the pod passes on of a text: gaps, repetitions, messages that never end, and bodies that nobody has sealed. */
  #passedOn(printed: Printed): Printed[] {
    const { garbled } = this.#options;
    const dice = this.#garbling;
    if (garbled() === 0 || !dice.chance(garbled())) return [printed];
    const { text } = printed;
    this.hasGarbled = true;
    const at = dice.int(0, Math.floor(text.length / 2));
    const broken = (text: string): Printed => ({ text, isBroken: true, frames: [] });
    const ways: (() => Printed[])[] = [() => [], () => [printed, printed]];
    // What is not sealed would be believed as it is.
    if (!text.includes('"kind":"ready"'))
      ways.push(
        () => [broken(`${text.slice(0, at)}\n`)],
        () => [broken(`${text.slice(0, at)}~${text.slice(at + 1)}`)],
      );
    return dice.pick(ways)();
  }

  /** Prints hostile text from time to time, as long as the container lives. */
  #disturb(dice: Dice): void {
    this.process.after(dice.skewed(100, 20_000), 'hostile text', () => {
      const text = this.#ready && hostileText(dice, this.#ready, this.bind);
      if (text) {
        this.log.push(text);
        for (const { up } of this.#streams) up.send({ text, frames: [] }, dice.skewed(0.1, 5));
      }
      this.#disturb(dice);
    });
  }

  /** Returns the frames that end in this text, which is printed now. */
  #framesIn(text: string): Printed['frames'] {
    const headers = [...text.matchAll(/"seq":(\d+),"kind":"(\w+)","part":(\d+),"parts":(\d+)/g)];
    return headers
      .filter(([, , , part, parts]) => part === parts)
      .map(([, number, kind = '']) => {
        const seq = Number(number);
        const printedAt = this.#printedAt.get(seq) ?? this.#options.scheduler.now;
        this.#printedAt.set(seq, printedAt);
        return { seq, kind, printedAt };
      });
  }

  #keep(text: string): void {
    const [, number, kind, part, parts] = KEPT.exec(text) ?? [];
    const seq = Number(number);
    // A frame that is sent again after its acknowledgement is not kept.
    if (!kind || part !== parts || seq <= this.#acknowledged) return;
    // A turn that ends before its agent has started has no run.
    const run = kind === 'result' ? this.#lastEnded : this.#lastStarted;
    if (!run) return;
    const state = this.content.digest;
    const incarnation = this.bind?.incarnation ?? 0;
    const frame = this.#kept.get(seq) ?? { kind: kind as KeptFrame['kind'], seq, incarnation, run, state };
    this.#kept.set(seq, frame);
    if (kind !== 'result') return;
    this.#results.set(frame.run, (this.#results.get(frame.run) ?? new Set()).add(text));
  }

  hasLogged(run: Run): boolean {
    const texts = this.#results.get(run);
    return texts !== undefined && this.log.hasOneOf(texts);
  }

  /** Draws whether the stream breaks or one direction of it stalls. */
  #mishap(stream: Stream, channel: { stall(ms: number): void }): void {
    const { dice, breaks } = this.#options;
    if (!dice.chance(2 * breaks())) return;
    if (dice.chance(0.5)) stream.end({ by: 'connection' });
    else channel.stall(dice.skewed(100, 20_000));
  }

  #leave(reason: 'Signal' | 'Shutdown', graceMs: number): void {
    if (this.#stopping) return;
    this.#stopping = true;
    const exit = { code: reason === 'Signal' ? TERMINATED : 0 };
    const end = () => this.process.after(0.1, 'runner exits', () => this.die(exit));
    this.process.after(graceMs + EXIT_MS, 'runner gives up', () => this.die(exit));
    this.#runner.stop(reason, `told by ${reason}`, graceMs).then(end, end);
  }
}
