import { createHash } from 'node:crypto';
import { EnterError, type FrameStream } from '../../core/enter/client.ts';
import type { FileEnd } from '../../core/enter/hello.ts';
import { TransportError } from '../../core/kube/errors.ts';
import { type Trace, traced } from './enter.ts';

/** A file, an archive or a list that comes from a session. */
export class Download {
  /** Facts that the session tells behind the last byte; undefined until then. */
  end: FileEnd | undefined;
  readonly #frames: FrameStream;
  readonly #trace: Trace;

  constructor(frames: FrameStream, trace: Trace) {
    this.#frames = frames;
    this.#trace = trace;
  }

  /** Yields the bytes. Fails where they are not those that were sent. */
  bytes(): AsyncGenerator<Buffer> {
    return traced(this.#checked(), this.#frames, this.#trace);
  }

  async *#checked(): AsyncGenerator<Buffer> {
    const hash = createHash('sha256');
    let bytes = 0;
    // The last piece waits for what is said at the end: without it the client sees that it does not have all.
    let last: Buffer | undefined;
    for await (const { kind, payload } of this.#frames) {
      if (kind === 'end') this.end = JSON.parse(payload.toString('utf8')) as FileEnd;
      if (kind !== 'data') continue;
      hash.update(payload);
      bytes += payload.length;
      if (last) yield last;
      last = payload;
    }
    if (this.end?.bytes !== bytes || this.end.sha256 !== hash.digest('hex')) {
      throw new TransportError('what came of the file is not what was sent');
    }
    if (this.end.changed === 'Rewritten') {
      throw new EnterError({ code: 'FileChanged', message: 'the file was written to while it was read' });
    }
    if (last) yield last;
  }
}
