import type { CommandExit, CommandStart, TerminalSize } from '../../core/enter/hello.ts';
import { type Clock, pause } from '../../core/runtime.ts';
import { stopFamily } from '../drivers/session-processes.ts';
import type { Contained } from '../process/contained.ts';
import { TimeLimit } from '../turn/time-limit.ts';
import { CommandInput } from './input.ts';
import type { CommandLog } from './log.ts';
import type { OutputStream } from './segment.ts';

/** Time from SIGTERM to SIGKILL where the runner ends a command, milliseconds. */
const END_GRACE_MS = 5000;
/** Time that processes get which outlive their command, to write their last output; milliseconds. */
const LINGER_MS = 1000;
/** Time after which a command without a client is ended, unless it is detached; milliseconds. */
export const NO_READER_MS = 60_000;
/**
 * Time limit of a command that names none, seconds. It is no setting of a class: a client sets its own for each command, and the
 * lifetime of the pod bounds them all.
 */
export const DEFAULT_TIMEOUT_SECONDS = 3600;

/** Reasons of exits by the code of the limit that ended the family. */
const LIMIT_REASONS: Partial<Record<string, CommandExit['reason']>> = {
  MemoryLimit: 'MemoryLimit',
  OOMKilled: 'MemoryLimit',
  TooManyProcesses: 'ProcessLimit',
  CpuLimit: 'CpuLimit',
};

export interface CommandOptions {
  id: string;
  start: CommandStart;
  log: CommandLog;
  clock: Clock;
}

/** A command whose process was started: its output, its input and its end. */
export class Command {
  readonly id: string;
  readonly start: CommandStart;
  readonly log: CommandLog;
  /** RFC 3339. */
  readonly started: string;
  /** RFC 3339; set once the last byte of output is in the log. */
  ended: string | undefined;
  exit: CommandExit | undefined;
  readonly input: CommandInput;
  /** Monotonic milliseconds of the last byte, or of the start. */
  lastActivity: number;
  /** Resolves with the exit. Never rejects. */
  readonly over: Promise<void>;
  readonly #family: Contained;
  readonly #clock: Clock;
  readonly #timeout: TimeLimit;
  readonly #written = { stdout: 0, stderr: 0 };
  #unread: TimeLimit;
  #isProcessOver = false;
  #reason: CommandExit['reason'];
  #isAbandoned = false;
  #waits = 0;
  #changed = Promise.withResolvers<void>();

  constructor(family: Contained, { id, start, log, clock }: CommandOptions) {
    this.id = id;
    this.start = start;
    this.log = log;
    this.#clock = clock;
    this.#family = family;
    this.started = new Date(clock.now()).toISOString();
    this.lastActivity = clock.monotonic();
    this.input = new CommandInput(family.stdin, start.stdin === true);
    const timeoutMs = 1000 * (start.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS);
    this.#timeout = new TimeLimit(clock, timeoutMs, 0, () => this.end('Timeout'));
    this.#unread = this.#newUnread();
    this.over = this.#run();
  }

  /** Resolves when there is output or an exit that was not there before. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** True while it keeps its session from being idle. A terminal that nobody uses does not. */
  get isBusy(): boolean {
    return !this.exit && !this.start.tty;
  }

  /** Sets whether a client is attached: a command that waits for its reader is ended when none comes. */
  attached(isAttached: boolean): void {
    this.#unread.pause();
    if (isAttached || this.exit || this.start.detach) return;
    this.#unread = this.#newUnread();
    this.#unread.start();
  }

  /** Sets whether its times stand, as they do while its processes stand still. */
  stand(stands: boolean, isAttached: boolean): void {
    if (stands) {
      this.#timeout.pause();
      this.#unread.pause();
    } else if (!this.exit) {
      this.#timeout.start();
      this.attached(isAttached);
    }
  }

  /** Records activity of its clients. */
  touch(): void {
    this.lastActivity = this.#clock.monotonic();
  }

  /** Sends a signal to the foreground group of its terminal, or to the group of its process, and SIGTERM and SIGKILL to every process. Without effect once the process has ended. */
  signal(name: NodeJS.Signals): void {
    if (this.#isProcessOver) return;
    if (name !== 'SIGCONT' && name !== 'SIGWINCH') this.#reason ??= 'Signal';
    if (name === 'SIGKILL') this.#family.kill();
    else if (name === 'SIGTERM') this.#family.terminate();
    else this.#family.signal(name);
  }

  /** Sets the size of its terminal. */
  resize(size: TerminalSize): void {
    this.#family.resize(size);
  }

  /** Ends it: SIGTERM to every process, and SIGKILL after the grace. Resolves when none is left. */
  end(reason: CommandExit['reason'], graceMs = END_GRACE_MS): Promise<void> {
    if (reason === 'NoReader') this.#abandon();
    if (!this.#isProcessOver || this.#isAbandoned) this.#reason ??= reason;
    return stopFamily(this.#family, graceMs, this.#clock);
  }

  async #run(): Promise<void> {
    this.#timeout.start();
    const reading = Promise.all([this.#follow(1, this.#family.stdout), this.#follow(2, this.#family.stderr)]);
    const { code, signal } = await this.#family.exited;
    this.#isProcessOver = true;
    this.#timeout.pause();
    await this.#linger();
    this.#family.kill();
    await Promise.all([reading, this.#family.gone]);
    this.#unread.pause();
    const { overrun } = this.#family;
    // A program that handles a signal and ends by itself was not ended by it.
    const own = this.#reason === 'Signal' && signal === null ? undefined : this.#reason;
    const reason = (overrun && LIMIT_REASONS[overrun.code]) ?? own;
    const { first } = this.log;
    this.exit = {
      ...(code !== null && { code }),
      ...(signal !== null && { signal }),
      ...(reason && { reason }),
      ...this.#written,
      lost: this.start.detach && first > 0 ? [[0, first]] : [],
    };
    this.ended = new Date(this.#clock.now()).toISOString();
    this.#change();
  }

  /** Reads a stream to its end, as fast as the log takes it. */
  async #follow(stream: OutputStream, output: AsyncIterable<Buffer>): Promise<void> {
    try {
      for await (const bytes of output) {
        this.#waits += 1;
        await this.log.whenRoom();
        this.#waits -= 1;
        if (this.#isAbandoned) continue;
        await this.log.append(stream, bytes);
        this.#written[stream === 1 ? 'stdout' : 'stderr'] += bytes.length;
        this.touch();
        this.#change();
      }
    } catch {
      // A keeper that was killed closes its streams; what was read until then counts.
    }
  }

  /** Waits for the processes that outlive the command. Time during which their output waits for a reader does not count. */
  async #linger(): Promise<void> {
    const gone = new AbortController();
    void this.#family.gone.then(() => gone.abort());
    while (await pause(this.#clock, LINGER_MS, gone.signal)) if (this.#waits === 0) return;
  }

  /** Drops the output that nobody will read, so that its processes wait for nobody. */
  #abandon(): void {
    this.#isAbandoned = true;
    this.log.stopWaiting();
  }

  #newUnread(): TimeLimit {
    return new TimeLimit(this.#clock, NO_READER_MS, 0, () => void this.end('NoReader'));
  }

  #change(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}
