import { parseExact } from '../../core/json.ts';
import { isObject } from '../../core/result/describe.ts';
import type { Envelope } from '../../core/result/envelope.ts';
import type { TurnFailure } from '../../core/result/failure.ts';
import { MAX_RAW_BYTES, tooLarge } from '../../core/result/output.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Contained, Survivor } from '../process/contained.ts';
import { ObjectScanner } from '../text/objects.ts';
import { type Flow, OutputReader } from './drain.ts';
import type { TurnHooks } from './driver.ts';
import { isBrokenResponse, parseResponse, wrong } from './messages.ts';

const NOTE_LATE = '[berth: a response to another request than the present one is left out]\n';

/**
 * Silence that ends the wait for stderr after a response where the output is not counted, milliseconds: stdout and stderr
 * are two pipes, so earlier output to stderr can arrive later.
 */
const SETTLE_QUIET_MS = 5;
const SETTLE_MS = 50;
/** Time without output after which an open object is given up if one of its lines is a whole response, milliseconds. */
const OPEN_ABOVE_RESPONSE_MS = 1_000;
/** Time without output after which any open object is given up, because it will not be closed; milliseconds. */
const OPEN_MS = 30_000;

interface Asked {
  id: string;
  answer: (answer: Envelope | TurnFailure) => void;
}

/** Running server process: requests go in; responses, events and log come out. */
export class ServerProcess {
  readonly family: Contained;
  /** Process ids of the server itself, as of before the current or last request. */
  own: ReadonlySet<number> = new Set();
  readonly #output: OutputReader;
  readonly #scanner: ObjectScanner;
  /** Hooks of the current turn, or of the last one: output between turns is text of the last turn. */
  #hooks: TurnHooks;
  #asked: Asked | undefined;
  /** Bytes of stderr before the request. */
  #errorBytes = 0;
  readonly #clock: Clock;
  readonly #flow: Flow;
  /** Ends the wait for the rest of an open object. */
  #stopWaiting: () => void = () => {};
  #lastOutput: Promise<void> | undefined;

  constructor(family: Contained, flow: Flow, clock: Clock, hooks: TurnHooks) {
    this.family = family;
    this.#hooks = hooks;
    this.#clock = clock;
    this.#flow = flow;
    this.#scanner = new ObjectScanner({
      maxBytes: MAX_RAW_BYTES,
      onObject: (bytes) => this.#message(bytes),
      onTooLarge: (bytes) => this.#asked?.answer(tooLarge(bytes)),
      onBroken: (text, why) => this.#broken(text, why),
      onLog: (bytes) => this.#hooks.log.stdout(bytes),
    });
    const wrote = () => {
      if (this.#asked) this.#hooks.active();
    };
    this.#output = new OutputReader(family, flow, clock, {
      stdout: (bytes) => {
        wrote();
        this.#scanner.push(bytes);
        this.#awaitMore();
      },
      stderr: (bytes) => {
        wrote();
        this.#hooks.log.stderr(bytes);
      },
      end: () => {
        this.#stopWaiting();
        this.#scanner.end();
        this.#hooks.log.flush();
      },
    });
    // A server need not read its input; its missing answer is noticed then.
    family.stdin.on('error', () => {});
  }

  /** Sends a request, one line of JSON, and resolves with the answer if there ever is one. */
  ask(id: string, line: string, hooks: TurnHooks): Promise<Envelope | TurnFailure> {
    // Objects left open before the request are closed, because the response has to be distinguished from them.
    while (this.#scanner.isOpen) this.#scanner.abandon();
    this.#hooks.log.flush();
    this.#hooks = hooks;
    this.#errorBytes = this.family.written?.stderr ?? 0;
    const { promise, resolve } = Promise.withResolvers<Envelope | TurnFailure>();
    this.#asked = { id, answer: resolve };
    this.family.stdin.write(line);
    return promise;
  }

  /**
   * Waits, after the request is answered, until the output before the answer has been read or the time for it is over.
   * Resolves with the processes of the family that are left.
   */
  async settle(): Promise<Survivor[]> {
    const until = this.#clock.monotonic() + SETTLE_MS;
    let survivors: Survivor[];
    let isWhole: boolean;
    let before: number;
    let errorBytes = this.#errorBytes;
    // A program can answer before it has written the rest of a long text to stderr, as Node does.
    do {
      before = errorBytes;
      survivors = await this.family.survivors();
      isWhole = await this.#output.caughtUp();
      errorBytes = this.family.written?.stderr ?? 0;
    } while (isWhole && errorBytes > before && this.#clock.monotonic() < until);
    // A process that was just ending need not be reported as left running.
    const isOwn = survivors.every(({ pid }) => this.own.has(pid));
    if (!isWhole || !isOwn) await this.#output.drain(SETTLE_QUIET_MS, SETTLE_MS);
    this.#asked = undefined;
    this.#stopWaiting();
    return isOwn ? survivors : this.family.survivors();
  }

  /**
   * Gives up an object that stays open without further output while a request waits, because it would hide the
   * response.
   */
  #awaitMore(): void {
    this.#stopWaiting();
    if (!this.#asked || !this.#scanner.isOpen) return;
    const giveUp = () => {
      // Reading was paused, so the rest may have arrived unread.
      if (this.#flow.full) return this.#awaitMore();
      while (this.#scanner.isOpen) this.#scanner.abandon();
    };
    this.#stopWaiting = this.#clock.setTimer(OPEN_ABOVE_RESPONSE_MS, () => {
      if (this.#flow.full) this.#awaitMore();
      else if (this.#scanner.hasInside((line) => this.#isResponse(line))) giveUp();
      else this.#stopWaiting = this.#clock.setTimer(OPEN_MS - OPEN_ABOVE_RESPONSE_MS, giveUp);
    });
  }

  #isResponse(line: string): boolean {
    if (!this.#asked || !line.includes(this.#asked.id)) return false;
    try {
      const message: unknown = JSON.parse(line);
      return isObject(message) && message.type === 'response' && message.id === this.#asked.id;
    } catch {
      return false;
    }
  }

  /** Reads the last output of a process that has ended. Resolves when it has been read, or the wait for it is over. */
  lastOutput(): Promise<void> {
    this.#lastOutput ??= this.#output.drain().then(() => {
      this.#asked = undefined;
    });
    return this.#lastOutput;
  }

  /** Writes a message of the runner among the server's text. */
  note(text: string): void {
    this.#hooks.log.stderr(Buffer.from(text));
  }

  #message(bytes: Buffer): boolean {
    let message: unknown;
    try {
      message = parseExact(bytes.toString('utf8'));
    } catch {
      this.#broken(bytes.toString('utf8'), 'Syntax');
      return false;
    }
    if (!isObject(message)) return false;
    if (message.type === 'event') return this.#event(message);
    if (message.type === 'response') return this.#response(message);
    return false;
  }

  /**
   * Reports whether the event belongs to the current request. An event of an earlier request, or between turns, is
   * plain text.
   */
  #event(event: Record<string, unknown>): boolean {
    if (!this.#asked || (event.id !== undefined && event.id !== this.#asked.id)) return false;
    this.#hooks.event(event);
    return true;
  }

  #response(message: Record<string, unknown>): boolean {
    try {
      const { id, answer } = parseResponse(message);
      if (id === this.#asked?.id) {
        this.#asked.answer(answer);
        return true;
      }
      this.note(NOTE_LATE);
    } catch (error) {
      this.#asked?.answer(error as TurnFailure);
    }
    return false;
  }

  #broken(text: string, why: 'Syntax' | 'NeverClosed'): void {
    if (this.#asked && isBrokenResponse(text, this.#asked.id)) {
      const open =
        'it is not valid JSON: its object is opened and not closed; write the whole object, best on one line';
      this.#asked.answer(wrong(why === 'Syntax' ? 'it is not valid JSON' : open));
    }
  }
}
