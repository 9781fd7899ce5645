/**
 * Copies a process's output to its log and to every attached reader. A reader that does not read blocks the stream for
 * all, log included, and in the end the process itself, as with a container runtime.
 */

import type { Readable } from 'node:stream';
import type { LogFile, StreamName } from './log-file.ts';

/** Receiver of live output. */
export interface OutputSink {
  readonly wants: ReadonlySet<StreamName>;
  write(stream: StreamName, chunk: Buffer): void;
  /** True while it can take no more; `onRoom` is called when that changes. */
  readonly full: boolean;
  onRoom(listener: () => void): void;
  /** Notes that no more output comes. */
  end(): void;
}

export class Output {
  /** Settles when both streams have ended and all output is in the log. */
  readonly ended: Promise<void>;
  readonly #streams: Record<StreamName, Readable>;
  readonly #log: LogFile | undefined;
  readonly #sinks = new Set<OutputSink>();

  constructor(stdout: Readable, stderr: Readable, log?: LogFile) {
    this.#streams = { stdout, stderr };
    this.#log = log;
    this.ended = Promise.all([this.#carry('stdout'), this.#carry('stderr')]).then(() => {});
  }

  /** Adds a receiver of later output. */
  add(sink: OutputSink): void {
    this.#sinks.add(sink);
  }

  remove(sink: OutputSink): void {
    this.#sinks.delete(sink);
    this.#resume();
  }

  /** Ends the receivers that block the streams, so that the rest reaches the log. */
  dropStalled(): void {
    for (const sink of this.#sinks) {
      if (!sink.full) continue;
      this.remove(sink);
      sink.end();
    }
  }

  /** Ends all receivers and drops unread output. */
  close(): void {
    for (const stream of Object.values(this.#streams)) stream.destroy();
    for (const sink of this.#sinks) sink.end();
    this.#sinks.clear();
  }

  #carry(name: StreamName): Promise<void> {
    const stream = this.#streams[name];
    stream.on('data', (chunk: Buffer) => {
      this.#log?.write(name, chunk);
      for (const sink of this.#sinks) if (sink.wants.has(name)) sink.write(name, chunk);
      this.#hold(name);
    });
    return new Promise((resolve) => {
      stream.on('error', () => {});
      stream.on('close', resolve);
    });
  }

  #hold(name: StreamName): void {
    for (const sink of this.#sinks) {
      if (!sink.wants.has(name) || !sink.full) continue;
      this.#streams[name].pause();
      sink.onRoom(() => this.#resume());
      return;
    }
  }

  #resume(): void {
    for (const [name, stream] of Object.entries(this.#streams) as [StreamName, Readable][]) {
      stream.resume();
      this.#hold(name);
    }
  }
}
