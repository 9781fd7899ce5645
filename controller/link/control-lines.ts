import { createHash } from 'node:crypto';
import { ASK_READY, bindText, type Position } from '../../core/frames/encode.ts';
import type { Bind, ControlMessages, SessionControlKind } from '../../core/frames/messages.ts';
import type { Attachment } from './attachment.ts';
import type { Binding } from './binding.ts';
import type { Contents, LinkOptions } from './options.ts';

interface ControlLinesOptions extends Pick<LinkOptions, 'clock' | 'epoch' | 'nextNumber'> {
  binding: Binding;
  attachment: Attachment;
}

/** Writes control lines to the runner, each with its place in the order of all. Whatever the attach does not take is lost. */
export class ControlLines {
  readonly #options: ControlLinesOptions;
  #sentAt: number;

  constructor(options: ControlLinesOptions) {
    this.#options = options;
    this.#sentAt = options.clock.monotonic();
  }

  /** Time of the last control line besides pings, monotonic milliseconds. */
  get sentAt(): number {
    return this.#sentAt;
  }

  /** Returns the number of the line, which is written only where there are keys to seal it. */
  send<K extends SessionControlKind>(kind: K, message: ControlMessages[K], binary?: Buffer): number {
    const { clock, binding, attachment } = this.#options;
    const position = this.#position();
    if (kind !== 'ping') this.#sentAt = clock.monotonic();
    const lines = binding.seal(position, kind, message, binary);
    if (lines) attachment.write(lines);
    return position.n;
  }

  /** Returns the number of the ping. For the runner of an unclaimed pod nothing can be sealed: an empty line asks for its `ready`. */
  ping(): number {
    const { binding, attachment } = this.#options;
    if (binding.session !== '') return this.send('ping', {});
    attachment.write([ASK_READY]);
    return 0;
  }

  /** Sends a binding and what belongs to it; returns false before the runner was recognised. */
  bind(bind: Omit<Bind, 'keys'>, { state, files = [], environment }: Contents): boolean {
    const { binding, attachment } = this.#options;
    const begun = binding.begin();
    if (!begun) return false;
    attachment.write(bindText(begun.boot, this.#position(), { ...bind, keys: begun.keys }));
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
    const { binding, nextNumber } = this.#options;
    const epoch = this.#options.epoch();
    return { epoch, n: nextNumber(), proof: binding.proofOf(epoch) };
  }
}

/** Digest of archives in their order: equal for equal archives. */
function versionOf(archives: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const archive of archives) hash.update(createHash('sha256').update(archive).digest());
  return hash.digest('hex');
}
