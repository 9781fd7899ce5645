import { createHash } from 'node:crypto';
import { ASK_READY, bindText, type Position } from '../../core/frames/encode.ts';
import type { Bind, ControlMessages, SessionControlKind } from '../../core/frames/messages.ts';
import type { Attachment } from './attachment.ts';
import type { Binding } from './binding.ts';
import type { Contents, LinkOptions } from './options.ts';

type ControlLinesOptions = Pick<LinkOptions, 'clock' | 'epoch' | 'nextNumber'>;

/** Writes control lines to the runner, each with its place in the order of all. Whatever the attach does not take is lost. */
export class ControlLines {
  readonly #options: ControlLinesOptions;
  readonly #binding: Binding;
  readonly #attachment: Attachment;
  #sentAt: number;

  constructor(options: ControlLinesOptions, binding: Binding, attachment: Attachment) {
    this.#options = options;
    this.#binding = binding;
    this.#attachment = attachment;
    this.#sentAt = options.clock.monotonic();
  }

  /** Time of the last control line besides pings, monotonic milliseconds. */
  get sentAt(): number {
    return this.#sentAt;
  }

  /** Returns the number of the line, which is written only where there are keys to seal it. */
  send<K extends SessionControlKind>(kind: K, message: ControlMessages[K], binary?: Buffer): number {
    const position = this.#position();
    if (kind !== 'ping') this.#sentAt = this.#options.clock.monotonic();
    const lines = this.#binding.seal(position, kind, message, binary);
    if (lines) this.#attachment.write(lines);
    return position.n;
  }

  /** Returns the number of the ping. For the runner of an unclaimed pod nothing can be sealed: an empty line asks for its `ready`. */
  ping(): number {
    if (this.#binding.session !== '') return this.send('ping', {});
    this.#attachment.write([ASK_READY]);
    return 0;
  }

  /** Sends a binding and what belongs to it; returns false before the runner was recognised. */
  bind(bind: Omit<Bind, 'keys'>, { state, files = [], environment }: Contents): boolean {
    const begun = this.#binding.begin();
    if (!begun) return false;
    this.#attachment.write(bindText(begun.boot, this.#position(), { ...bind, keys: begun.keys }));
    if (state) {
      const { sealed, ...facts } = state;
      this.send('restore', facts, sealed);
    }
    if (environment) this.send('environment', { digest: environment.digest }, environment.sealed);
    const version = files.length > 0 ? versionOf(files) : '';
    for (const [index, archive] of files.entries()) {
      this.send('files', { version, index, count: files.length }, archive);
    }
    return true;
  }

  #position(): Position {
    const epoch = this.#options.epoch();
    return { epoch, n: this.#options.nextNumber(), proof: this.#binding.proofOf(epoch) };
  }
}

/** Digest of archives in their order: equal for equal archives. */
function versionOf(archives: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const archive of archives) hash.update(createHash('sha256').update(archive).digest());
  return hash.digest('hex');
}
