/**
 * Carries what a process prints to its log and to everybody attached. One that does not read blocks the stream for
 * all, log included, and in the end the process itself: as a container runtime does it.
 */

import type { Readable } from 'node:stream';
import type { LogFile, StreamName } from './log-file.ts';

/** Somebody who gets output as it comes. */
export interface OutputSink {
  readonly wants: ReadonlySet<StreamName>;
  write(stream: StreamName, chunk: Buffer): void;
  /** True while it can take no more; `onRoom` is then called once that changes. */
  readonly full: boolean;
  onRoom(listener: () => void): void;
  /** Nothing more comes. */
  end(): void;
}

export class Output {
  /** Settles when both streams have ended and all of it is in the log. */
  readonly ended: Promise<void>;
  readonly #streams: Record<StreamName, Readable>;
  readonly #log: LogFile | undefined;
  readonly #sinks = new Set<OutputSink>();

  constructor(stdout: Readable, stderr: Readable, log?: LogFile) {
    this.#streams = { stdout, stderr };
    this.#log = log;
    this.ended = Promise.all([this.#carry('stdout'), this.#carry('stderr')]).then(() => {});
  }

  /** What was printed before is not repeated. */
  add(sink: OutputSink): void {
    this.#sinks.add(sink);
  }

  remove(sink: OutputSink): void {
    this.#sinks.delete(sink);
    this.#resume();
  }

  /** Ends those who block the streams, so that the rest reaches the log. */
  dropStalled(): void {
    for (const sink of this.#sinks) {
      if (!sink.full) continue;
      this.remove(sink);
      sink.end();
    }
  }

  /** Tells everybody that nothing more comes, and gives up what was not read. */
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
