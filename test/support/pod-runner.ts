import { createHash } from 'node:crypto';
import { type ControlKind, PROTOCOL_VERSION } from '../../core/frames/messages.ts';
import { TransportError } from '../../core/kube/errors.ts';
import type { AttachOptions, PodStream, StreamEnd } from '../../core/kube/types.ts';
import type { Clock, Random } from '../../core/runtime.ts';
import { hiddenBy } from '../../core/text/hidden.ts';
import type { Completion, Driver } from '../../runner/drivers/driver.ts';
import { Meter } from '../../runner/limits/meter.ts';
import { Runner } from '../../runner/runner.ts';
import { EMPTY_ARCHIVE, EMPTY_DIGEST } from '../../runner/state/archive.ts';
import { noCommands } from './visit.ts';

/** An attach; `held`: what is not read of it while it is paused. */
interface Attached {
  options: AttachOptions;
  end(end: StreamEnd): void;
  held?: Buffer[] | undefined;
}

/**
 * The runner's real code behind an attach that a test can break: no process, no network, only the virtual clock's time.
 * As with a real attach, output is lost while no client is attached.
 */
export class PodRunner {
  readonly runner: Runner;
  /** Uids of the turns that the driver was given. */
  readonly given: string[] = [];
  /** Archives of the agent's files that were unpacked. */
  files: string[] = [];
  /** True: lines written to the pod are lost. */
  deaf = false;
  /** Kind of control lines that are lost, as when an attach breaks before them. */
  loses: ControlKind | undefined;
  /** Numbers of resend requests and of answers. */
  resends = 0;
  asked = 0;
  /** Number of cancellations that were written. */
  cancelled = 0;
  /** Number of attempts to attach. */
  attempts = 0;
  /** True: the next printed frame arrives without its beginning. */
  tears = false;
  /** Error that unpacking an environment ends with. */
  unpackError: Error | undefined;
  /** Time that a written line takes while nothing else answers, milliseconds. */
  writeMs = 0;
  /** Archive of the state; undefined: there is none. */
  archive: Buffer | undefined;
  /** Time that packing the state takes, milliseconds. */
  packMs = 0;
  /** True: no attach succeeds, as when the kubelet does not answer. */
  unreachable = false;
  #attached: Attached | undefined;
  #finish: ((completion: Completion) => void) | undefined;
  readonly #clock: Clock;

  constructor(clock: Clock, random: Random, podUID = 'pod-1') {
    this.#clock = clock;
    const driver: Driver = {
      run: ({ turn }, hooks) => {
        this.given.push(turn.turn);
        hooks.started(1);
        return new Promise((resolve) => {
          this.#finish = resolve;
          hooks.signal.addEventListener('abort', () =>
            resolve({ outcome: hooks.signal.reason.outcome, error: hooks.signal.reason.error, leftRunning: [] }),
          );
        });
      },
      stop: async () => {},
    };
    this.runner = new Runner({
      podUID,
      protocol: PROTOCOL_VERSION,
      clock,
      random,
      writeFrames: (text) => {
        this.print(this.tears ? text.slice(40) : text);
        this.tears = false;
        return true;
      },
      writeText: () => {},
      partsFor: () => ({
        driver,
        commands: noCommands(),
        meter: new Meter({ limits: { required: false }, together: false, clock }),
        state: {
          pack: async () => {
            if (this.packMs > 0) await new Promise<void>((done) => this.#clock.setTimer(this.packMs, done));
            const digest = this.archive ? createHash('sha256').update(this.archive).digest('hex') : EMPTY_DIGEST;
            const packed = this.archive ?? EMPTY_ARCHIVE;
            return { digest, bytes: packed.length, packed, skipped: [] };
          },
          unpack: async () => {},
        },
        unpackFiles: async (archives) => {
          this.files = archives.map(String);
        },
        unpackEnvironment: async () => {
          if (this.unpackError) throw this.unpackError;
        },
        secrets: hiddenBy({}),
        containment: 'Keeper',
        hardened: true,
      }),
    });
  }

  /** Ends the agent of the running turn with this output. */
  finish(output: unknown): void {
    this.#finish?.({ outcome: 'Succeeded', output, leftRunning: [] });
  }

  /** Prints text on the container's stdout, as a hostile PID 1 can. */
  print(text: string | Buffer): void {
    const printed = Buffer.from(text as string);
    if (this.#attached?.held) this.#attached.held.push(printed);
    else this.#attached?.options.onStdout?.(printed);
  }

  /** Breaks the connection of the present attach. */
  drop(): void {
    const attached = this.#attached;
    this.#attached = undefined;
    attached?.end({ by: 'connection' });
  }

  attach = async (_ref: unknown, options: AttachOptions): Promise<PodStream> => {
    this.attempts += 1;
    if (this.unreachable) throw new TransportError('error dialing backend');
    const { promise, resolve } = Promise.withResolvers<StreamEnd>();
    const attached: Attached = { options, end: resolve };
    this.#attached = attached;
    return {
      write: async (data) => {
        const text = data.toString();
        if (this.writeMs > 0) await new Promise<void>((done) => this.#clock.setTimer(this.writeMs, done));
        if (text.includes('"kind":"resend"')) this.resends += 1;
        if (text.includes('"kind":"ping"')) this.asked += 1;
        if (text.includes('"kind":"cancel"')) this.cancelled += 1;
        const isLost = this.deaf || (this.loses && text.includes(`"kind":"${this.loses}"`));
        if (!isLost) this.runner.push(Buffer.from(text));
      },
      closeStdin: () => {},
      pause: () => {
        attached.held ??= [];
      },
      resume: () => {
        const held = attached.held ?? [];
        attached.held = undefined;
        for (const [index, text] of held.entries()) {
          // The reader may stop again at any text.
          const again = attached.held as Buffer[] | undefined;
          if (again) return void again.push(...held.slice(index));
          options.onStdout?.(text);
        }
      },
      close: () => {
        if (this.#attached === attached) this.#attached = undefined;
        resolve({ by: 'local' });
      },
      closed: promise,
    };
  };
}
