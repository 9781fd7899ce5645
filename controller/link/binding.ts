import { controlText, type Position } from '../../core/frames/encode.ts';
import type { ControlKind, ControlMessages, Ready } from '../../core/frames/messages.ts';
import { frameKeys } from '../../core/frames/seal.ts';
import type { Address } from '../../core/frames/wire.ts';
import type { Random } from '../../core/runtime.ts';
import { framesInLog } from './ended-log.ts';
import type { MasterKeys } from './keys.ts';

export interface BindingOptions {
  random: Random;
  keys: MasterKeys;
  session: string;
  incarnation: number;
  podUID: string;
  /** Frames from now on are those of this sender, sealed with this key. */
  onKeys(channel: Address & { key: Buffer }): void;
}

/** Who is at the other end of an attach: whether it is ours, and the keys that nobody else has. */
export class Binding {
  readonly #options: BindingOptions;
  #boot: string | undefined;
  #keys: { up: Buffer; down: Buffer } | undefined;
  /** A frame has opened: the keys are the right ones. */
  #proven = false;
  #tries = 0;

  constructor(options: BindingOptions) {
    this.#options = options;
  }

  get boot(): string | undefined {
    return this.#boot;
  }

  /** The keys for sealing are known, though perhaps not yet the right ones. */
  get hasKeys(): boolean {
    return this.#keys !== undefined;
  }

  /** Whose a runner says it is. In clear, so nothing is believed because of it: that shows in whether its frames open. */
  recognize(ready: Ready): 'Unbound' | 'Ours' | 'Foreign' {
    const { session, incarnation, podUID } = this.#options;
    if (ready.podUID !== podUID || (this.#boot !== undefined && this.#boot !== ready.boot)) return 'Foreign';
    if (ready.session === undefined) {
      this.#boot = ready.boot;
      return 'Unbound';
    }
    return ready.session === session && ready.incarnation === incarnation ? 'Ours' : 'Foreign';
  }

  /**
   * Its boot nonce, and the keys that a runner is to have that is unbound, or that one has that was bound; undefined
   * before it was recognised.
   */
  begin(): { boot: string; keys: { up: string; down: string } } | undefined {
    const boot = this.#boot;
    if (boot === undefined) return undefined;
    const { up, down } = this.#proven && this.#keys ? this.#keys : this.#use(boot, this.#masters[0] as Buffer);
    return { boot, keys: { up: up.toString('base64'), down: down.toString('base64') } };
  }

  /** For a runner that is ours: whether others have bound it, or may have. */
  resume(boot: string, byOthers: boolean): boolean {
    if (this.#proven) return byOthers;
    // Which master key its keys were derived from shows in whether its frames open: each attach tries another.
    const resumed = byOthers || this.#boot === undefined;
    const masters = this.#masters;
    this.#use(boot, masters[resumed ? this.#tries++ % masters.length : 0] as Buffer);
    return resumed;
  }

  /** A frame has opened. */
  proven(): void {
    this.#proven = true;
  }

  /** The lines of a sealed control message; undefined before there are keys. */
  seal<K extends Exclude<ControlKind, 'bind'>>(
    position: Position,
    kind: K,
    message: ControlMessages[K],
    binary?: Buffer,
  ): Iterable<string> | undefined {
    if (!this.#keys || !this.#boot) return undefined;
    const { session, incarnation, random } = this.#options;
    const channel = { session, incarnation, boot: this.#boot, key: this.#keys.down, random };
    return controlText(channel, position, kind, message, binary);
  }

  /** What the log of an ended container holds of its frames, with the keys set by which they open. */
  framesIn(log: Buffer): Buffer | undefined {
    const { session, incarnation } = this.#options;
    const masters = this.#masters;
    const found = framesInLog(log, { session, incarnation }, (boot) =>
      this.#boot === undefined || this.#boot === boot ? masters.map((master) => this.#derive(master, boot).up) : [],
    );
    if (!found) return undefined;
    this.#use(found.boot, masters[found.key] as Buffer);
    return found.text;
  }

  /** The present master key first. */
  get #masters(): Buffer[] {
    const { current, byId } = this.#options.keys;
    return [current.key, ...[...byId].filter(([id]) => id !== current.id).map(([, key]) => key)];
  }

  #derive(master: Buffer, boot: string): { up: Buffer; down: Buffer } {
    const { session, podUID } = this.#options;
    return frameKeys(master, { session, podUID, boot });
  }

  #use(boot: string, master: Buffer): { up: Buffer; down: Buffer } {
    const { session, incarnation, onKeys } = this.#options;
    const keys = this.#derive(master, boot);
    this.#boot = boot;
    this.#keys = keys;
    onKeys({ session, incarnation, boot, key: keys.up });
    return keys;
  }
}
