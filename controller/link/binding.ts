import { controlText, type Position } from '../../core/frames/encode.ts';
import type { ControlMessages, Ready, SessionControlKind } from '../../core/frames/messages.ts';
import { epochProof, frameKeys, provesEpoch } from '../../core/frames/seal.ts';
import type { Address } from '../../core/frames/wire.ts';
import type { Random } from '../../core/runtime.ts';
import { framesInLog, type LoggedMessage, type LogRequest } from './ended-log.ts';
import type { MasterKeys } from './keys.ts';

export interface BindingOptions {
  random: Random;
  keys: MasterKeys;
  session: string;
  incarnation: number;
  podUID: string;
  /** Handler of the sender and the key of all frames from now on. */
  onKeys(channel: Address & { key: Buffer }): void;
}

/** Identifies the runner at the other end of an attach, and holds the keys shared with it alone. */
export class Binding {
  readonly #options: BindingOptions;
  #session: string;
  #incarnation: number;
  #boot: string | undefined;
  #keys: { up: Buffer; down: Buffer } | undefined;
  /** True once a frame has opened: the keys are the right ones. */
  #proven = false;
  #tries = 0;
  /** The last proof made, which serves for all lines of one epoch. */
  #epoch: { epoch: number; proof: string } | undefined;

  constructor(options: BindingOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#incarnation = options.incarnation;
  }

  /** UID of the pod's session; empty for a pod that no session has claimed. */
  get session(): string {
    return this.#session;
  }

  get incarnation(): number {
    return this.#incarnation;
  }

  get boot(): string | undefined {
    return this.#boot;
  }

  /** Reports whether keys for sealing are known, though perhaps not yet the right ones. */
  get hasKeys(): boolean {
    return this.#keys !== undefined;
  }

  /** Gives the unbound runner of a claimed pod to a session. */
  assign(session: string, incarnation: number): void {
    this.#session = session;
    this.#incarnation = incarnation;
  }

  /** Classifies a runner by its `ready`. `ready` is in clear and proves nothing; only frames that open do. */
  recognize(ready: Ready): 'Unbound' | 'Ours' | 'Foreign' {
    const [session, incarnation] = [this.#session, this.#incarnation];
    const { podUID } = this.#options;
    if (ready.podUID !== podUID || (this.#boot !== undefined && this.#boot !== ready.boot)) return 'Foreign';
    if (ready.session === undefined) {
      this.#boot = ready.boot;
      return 'Unbound';
    }
    return ready.session === session && ready.incarnation === incarnation ? 'Ours' : 'Foreign';
  }

  /**
   * The boot nonce, with the keys for an unbound runner or those of the bound one; undefined before the runner was
   * recognised.
   */
  begin(): { boot: string; keys: { up: string; down: string } } | undefined {
    const boot = this.#boot;
    if (boot === undefined) return undefined;
    const { up, down } = this.#proven && this.#keys ? this.#keys : this.#use(boot, this.#masters[0] as Buffer);
    return { boot, keys: { up: up.toString('base64'), down: down.toString('base64') } };
  }

  /** Chooses keys for a runner of this session. Returns whether an earlier leader has bound it, or may have. */
  resume(boot: string, byOthers: boolean): boolean {
    if (this.#proven) return byOthers;
    // The master key behind the runner's keys is known only once frames open: each attach tries another.
    const resumed = byOthers || this.#boot === undefined;
    const masters = this.#masters;
    this.#use(boot, masters[resumed ? this.#tries++ % masters.length : 0] as Buffer);
    return resumed;
  }

  /** Returns what proves to later leaders, through the runner, that this installation has led with the epoch. */
  proofOf(epoch: number): string {
    if (this.#epoch?.epoch !== epoch) {
      const { keys, podUID } = this.#options;
      this.#epoch = { epoch, proof: epochProof(keys.current.key, podUID, epoch) };
    }
    return this.#epoch.proof;
  }

  /** Reports whether this installation has led with the epoch that `ready` names. `ready` alone is no proof. */
  isProven({ epoch, proof }: Ready): boolean {
    if (proof === undefined) return false;
    return this.#masters.some((master) => provesEpoch(proof, master, this.#options.podUID, epoch));
  }

  /** Records that a frame has opened. */
  proven(): void {
    this.#proven = true;
  }

  /** Seals a control message into lines; undefined before there are keys. */
  seal<K extends SessionControlKind>(
    position: Position,
    kind: K,
    message: ControlMessages[K],
    binary?: Buffer,
  ): Iterable<string> | undefined {
    if (!this.#keys || !this.#boot) return undefined;
    const [session, incarnation] = [this.#session, this.#incarnation];
    const { random } = this.#options;
    const channel = { session, incarnation, boot: this.#boot, key: this.#keys.down, random };
    return controlText(channel, position, kind, message, binary);
  }

  /** The runner's messages in the log of an ended container; sets the keys by which they open. Undefined where no frame opens. */
  async messagesIn(log: Buffer, reading: Pick<LogRequest, 'pause' | 'onCut'>): Promise<LoggedMessage[] | undefined> {
    const [session, incarnation] = [this.#session, this.#incarnation];
    const masters = this.#masters;
    const found = await framesInLog(log, {
      ...reading,
      session,
      incarnation,
      keysOf: (boot) =>
        this.#boot === undefined || this.#boot === boot ? masters.map((master) => this.#derive(master, boot).up) : [],
    });
    if (!found) return undefined;
    this.#use(found.boot, masters[found.key] as Buffer);
    return found.messages;
  }

  /** Master keys, the present one first. */
  get #masters(): Buffer[] {
    const { current, byId } = this.#options.keys;
    return [current.key, ...[...byId].filter(([id]) => id !== current.id).map(([, key]) => key)];
  }

  #derive(master: Buffer, boot: string): { up: Buffer; down: Buffer } {
    return frameKeys(master, { session: this.#session, podUID: this.#options.podUID, boot });
  }

  #use(boot: string, master: Buffer): { up: Buffer; down: Buffer } {
    const [session, incarnation] = [this.#session, this.#incarnation];
    const { onKeys } = this.#options;
    const keys = this.#derive(master, boot);
    this.#boot = boot;
    this.#keys = keys;
    onKeys({ session, incarnation, boot, key: keys.up });
    return keys;
  }
}
