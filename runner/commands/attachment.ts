import { unlessAborted } from '../../core/abort.ts';
import { signalProblem } from '../../core/enter/command-start.ts';
import { type EnterFrame, INPUT_WINDOW, jsonPayload, positionAt, positionBytes } from '../../core/enter/frames.ts';
import type { CommandReady, EnterRefusal } from '../../core/enter/hello.ts';
import type { Visit } from '../enter/visit.ts';
import type { Command } from './command.ts';

export interface AttachmentOptions {
  /** Position of the first byte of output that the client wants. */
  from: number;
  /** Reports whether the command's input comes from this client now. */
  hasInput: () => boolean;
  /** Called when the client has acknowledged output. */
  onAcknowledged: () => void;
  /** Called when the client has the exit. */
  onExitKnown: () => void;
}

/** A client that reads a command's output, and may give its input. */
export class Attachment {
  /** Position up to which the client has the output. */
  acknowledged: number;
  readonly #visit: Visit;
  readonly #command: Command;
  readonly #options: AttachmentOptions;
  #drained = Promise.withResolvers<void>();

  constructor(visit: Visit, command: Command, options: AttachmentOptions) {
    this.#visit = visit;
    this.#command = command;
    this.#options = options;
    this.acknowledged = options.from;
    visit.onDrain(() => this.#drained.resolve());
    visit.onFrame((frame) => this.#take(frame));
  }

  /** Sends `ready` and the output, then the exit. Resolves when the exit is sent or the client has gone. */
  async run(): Promise<void> {
    const { log, id, started, input } = this.#command;
    const ready: CommandReady = { id, started, first: log.first, next: log.next, input: input.next };
    this.#visit.send('ready', jsonPayload(ready));
    let at = this.#options.from;
    while (!this.#visit.gone.aborted) {
      const { changed } = this.#command;
      const records = at < log.next ? await log.read(at) : [];
      if (at < log.first && !records) {
        const { first } = log;
        await this.#send('lost', positionBytes(at, first));
        at = first;
      }
      for (const { stream, position, bytes } of records ?? []) {
        await this.#send('output', Buffer.of(stream), positionBytes(position), bytes);
        at = position + bytes.length;
      }
      if (at < log.next) continue;
      if (this.#command.exit) {
        this.#visit.send('exit', jsonPayload(this.#command.exit));
        return;
      }
      await this.#unlessGone(changed);
    }
  }

  async #send(kind: 'output' | 'lost', ...parts: Buffer[]): Promise<void> {
    this.#drained = Promise.withResolvers();
    if (!this.#visit.send(kind, ...parts)) await this.#unlessGone(this.#drained.promise);
  }

  /** Waits for what never rejects, or until the client has gone; leaves nothing behind, as there are many waits. */
  async #unlessGone(wait: Promise<void>): Promise<void> {
    await unlessAborted(wait, this.#visit.gone).catch(() => {});
  }

  #take({ kind, payload }: EnterFrame): void {
    try {
      this.#carryOut(kind, payload);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#visit.refuse(invalidFrame(kind, 'is too short'));
    }
  }

  #carryOut(kind: EnterFrame['kind'], payload: Buffer): void {
    this.#command.touch();
    if (kind === 'acknowledge') {
      this.acknowledged = Math.max(this.acknowledged, positionAt(payload));
      this.#options.onAcknowledged();
    } else if (kind === 'exit') {
      if (this.#command.exit) this.#options.onExitKnown();
    } else if (kind === 'signal') {
      const signal = payload.toString('latin1');
      const problem = signalProblem(signal);
      if (problem) this.#visit.refuse(problem);
      else this.#command.signal(signal as NodeJS.Signals);
    } else if (!this.#options.hasInput()) return;
    else if (kind === 'resize')
      this.#command.resize({ rows: payload.readUInt16BE(), columns: payload.readUInt16BE(2) });
    else if (kind === 'input') this.#input(positionAt(payload), payload.subarray(8));
    else if (kind === 'inputEnd') {
      if (!this.#command.input.end(positionAt(payload))) this.#visit.refuse(missingInput(this.#command));
    }
  }

  #input(position: number, bytes: Buffer): void {
    const { input } = this.#command;
    const isTaken = input.take(position, bytes, (taken) => this.#visit.send('taken', positionBytes(taken)));
    if (!isTaken) this.#visit.refuse(missingInput(this.#command));
    else if (input.waiting > INPUT_WINDOW)
      this.#visit.refuse(
        invalidFrame('input', `is ahead of what the command reads by more than ${INPUT_WINDOW} bytes`),
      );
  }
}

function missingInput({ input }: Command): EnterRefusal {
  return invalidFrame('input', `skips bytes; the next one has the position ${input.next}`);
}

function invalidFrame(kind: EnterFrame['kind'], problem: string): EnterRefusal {
  return { code: 'Invalid', message: `the frame "${kind}" ${problem}`, field: kind };
}
