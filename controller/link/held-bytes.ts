import type { Clock } from '../../core/runtime.ts';
import type { PodCounters } from './pod-counters.ts';

const MiB = 1024 * 1024;

/**
 * Memory for messages of pods that are not stored yet, over all links: room for several states of the largest size beside each
 * other, within the memory that the chart gives the controller.
 */
const MAX_BYTES = 256 * MiB;
/** Part of it that one pod may take. A runner holds less for its acknowledgement: see `MAX_DURABLE_BYTES` of its sender. */
const MAX_POD_BYTES = 144 * MiB;
/** Part of it for pods that hold at most `MODEST_BYTES`: large messages of others do not keep them waiting. */
const RESERVED_BYTES = 32 * MiB;
const MODEST_BYTES = 4 * MiB;
/** Messages up to this size are taken above the limit from a pod that has its place already, so that its turn can end. */
const SMALL_BYTES = 2 * MiB;
/** Maximum bytes of small messages above the limit. */
const MAX_SMALL_BYTES = 64 * MiB;
/**
 * Time after which a pod whose messages make no result gives up its place to one that waits. The shorter one is for a pod that
 * holds more than an equal part, where the other wants less.
 */
const HOLD_MS = 30_000;
const LARGE_HOLD_MS = 3_000;

export interface HolderOptions {
  /** Reports whether the held messages wait for the controller: they are a whole result, a request or a requested snapshot. */
  isComplete(): boolean;
  /** Handler of room that has come after a wait of this many milliseconds. */
  onRoom(waitedMs: number): void;
  /** Handler of a place that is to be given up: the held messages are to be dropped, and requested again when there is room. */
  onLost(): void;
}

/** Limits the memory of all messages that links hold. Who finds no room waits; nobody holds a place for nothing while others wait. */
export class HeldBytes {
  readonly #clock: Pick<Clock, 'monotonic' | 'setTimer'>;
  readonly #counters: PodCounters | undefined;
  readonly #maxBytes: number;
  readonly #reserved: number;
  readonly #holders = new Set<Holder>();
  readonly #waiting = new Set<Holder>();
  #cancelTimer: () => void = () => {};

  constructor(
    clock: Pick<Clock, 'monotonic' | 'setTimer'>,
    {
      counters,
      maxBytes = MAX_BYTES,
      reservedBytes = RESERVED_BYTES,
    }: { counters?: PodCounters | undefined; maxBytes?: number; reservedBytes?: number } = {},
  ) {
    this.#clock = clock;
    this.#counters = counters;
    this.#maxBytes = maxBytes;
    this.#reserved = reservedBytes;
  }

  /** Returns the place of one link. */
  open(options: HolderOptions): Holder {
    return new Holder(options, {
      now: () => this.#clock.monotonic(),
      tryTake: (holder, bytes) => this.#tryTake(holder, bytes),
      changed: (holder) => this.#changed(holder),
    });
  }

  get bytes(): number {
    let sum = 0;
    for (const { bytes } of this.#holders) sum += bytes;
    return sum;
  }

  #tryTake(holder: Holder, bytes: number): boolean {
    const isFirst = this.#waiting.size === 0 || this.#first() === holder;
    if (isFirst && this.bytes + bytes <= this.#limitFor(holder, bytes)) return true;
    const isReserved = isModest(holder, bytes) && this.#modestBytes + bytes <= this.#reserved;
    if (isReserved && this.bytes + bytes <= this.#maxBytes) return true;
    return holder.bytes > 0 && bytes <= SMALL_BYTES && this.bytes + bytes <= this.#maxBytes + MAX_SMALL_BYTES;
  }

  #limitFor(holder: Holder, bytes: number): number {
    return isModest(holder, bytes) ? this.#maxBytes : this.#maxBytes - this.#reserved;
  }

  get #modestBytes(): number {
    let sum = 0;
    for (const { bytes } of this.#holders) if (bytes <= MODEST_BYTES) sum += bytes;
    return sum;
  }

  #changed(holder: Holder): void {
    if (holder.bytes > 0) this.#holders.add(holder);
    else this.#holders.delete(holder);
    if (holder.wants > 0 && !this.#waiting.has(holder) && this.#counters) this.#counters.waitedForMemory += 1;
    if (holder.wants > 0) this.#waiting.add(holder);
    else this.#waiting.delete(holder);
    this.#admit();
  }

  /** An equal part of the memory for everybody who holds or wants some. */
  get #part(): number {
    return this.#maxBytes / (this.#holders.size + this.#waiting.size);
  }

  /** Time from which the holder has held its place too long for the one that is first, monotonic milliseconds. */
  #dueAt(holder: Holder, first: Holder | undefined): number {
    const isLarge = holder.bytes > this.#part && first !== undefined && first.wants <= this.#part;
    return holder.since + (isLarge ? LARGE_HOLD_MS : HOLD_MS);
  }

  /** The one that has lost its place least often, and of these the one that has waited longest. */
  #first(): Holder | undefined {
    let first: Holder | undefined;
    for (const holder of this.#waiting) if (!first || holder.losses < first.losses) first = holder;
    return first;
  }

  #admit(): void {
    this.#cancelTimer();
    const findNext = () => [...this.#waiting].find((holder) => this.#tryTake(holder, holder.wants));
    for (let next = findNext(); next; next = findNext()) {
      this.#waiting.delete(next);
      this.#holders.add(next);
      next.admitted();
    }
    if (this.#waiting.size === 0) return;
    const first = this.#first();
    const next = Math.min(...[...this.#holders].map((holder) => this.#dueAt(holder, first)));
    if (!Number.isFinite(next)) return;
    this.#cancelTimer = this.#clock.setTimer(Math.max(1, next - this.#clock.monotonic()), () => this.#free());
  }

  /**
   * Takes the places of those that have held them too long for nothing, the largest first, until the first that waits has room. None is
   * taken where all together would not make enough.
   */
  #free(): void {
    const first = this.#first();
    const due = [...this.#holders].filter((holder) => this.#dueAt(holder, first) <= this.#clock.monotonic());
    const idle = due.filter((holder) => holder !== first && !holder.isComplete).sort((a, b) => b.bytes - a.bytes);
    const left = this.bytes - idle.reduce((sum, { bytes }) => sum + bytes, 0);
    const isEnough = first !== undefined && left + first.wants <= this.#limitFor(first, first.wants);
    for (const holder of due) if (!isEnough || !idle.includes(holder)) holder.goesOn();
    for (const holder of isEnough ? idle : []) {
      holder.lose();
      if (!first?.isWaiting) return;
    }
    this.#admit();
  }
}

const isModest = (holder: Holder, bytes: number) => holder.bytes + bytes <= MODEST_BYTES;

interface Shared {
  now(): number;
  tryTake(holder: Holder, bytes: number): boolean;
  changed(holder: Holder): void;
}

/** The place of one link in the memory of all. */
export class Holder {
  readonly #options: HolderOptions;
  readonly #shared: Shared;
  /** Bytes of the message that is coming, and of those that are kept. */
  #coming = 0;
  #kept = 0;
  #since = 0;
  #waiting: { bytes: number; since: number } | undefined;
  /** How often the place was taken since the last acknowledgement. */
  #losses = 0;

  constructor(options: HolderOptions, shared: Shared) {
    this.#options = options;
    this.#shared = shared;
  }

  get bytes(): number {
    return this.#coming + this.#kept;
  }

  /** Bytes of the wait; 0 while there is none. */
  get wants(): number {
    return this.#waiting?.bytes ?? 0;
  }

  get isWaiting(): boolean {
    return this.#waiting !== undefined;
  }

  /** Milliseconds of the wait for room; undefined while there is none. */
  get waitedMs(): number | undefined {
    return this.#waiting && this.#shared.now() - this.#waiting.since;
  }

  get losses(): number {
    return this.#losses;
  }

  /** Time from which the place counts as held, monotonic milliseconds. */
  get since(): number {
    return this.#since;
  }

  get isComplete(): boolean {
    return this.#options.isComplete();
  }

  /**
   * Takes room for a message of so many bytes, instead of that for an earlier one that was not completed. `Wait`: there is none yet, and
   * `onRoom` is called when there is. `TooLarge`: there never will be.
   */
  take(bytes: number): 'Taken' | 'Wait' | 'TooLarge' {
    if (this.#waiting) return 'Wait';
    this.#coming = 0;
    if (this.#kept + bytes > MAX_POD_BYTES) {
      this.#shared.changed(this);
      return 'TooLarge';
    }
    if (!this.#shared.tryTake(this, bytes)) {
      this.#waiting = { bytes, since: this.#shared.now() };
      this.#shared.changed(this);
      return this.#waiting ? 'Wait' : 'Taken';
    }
    this.#taken(bytes);
    this.#shared.changed(this);
    return 'Taken';
  }

  /** Notes that no message is coming any more, and the bytes of those that are kept. */
  keep(bytes: number): void {
    if (this.bytes === 0) this.#since = this.#shared.now();
    this.#coming = 0;
    this.#kept = bytes;
    this.#shared.changed(this);
  }

  /** Notes that the held messages are not needed any more. */
  acknowledged(): void {
    this.#losses = 0;
  }

  /** Holds and wants nothing any more. */
  close(): void {
    this.#waiting = undefined;
    this.keep(0);
  }

  /** Takes the room that has come. */
  admitted(): void {
    const { bytes, since } = this.#waiting ?? { bytes: 0, since: 0 };
    this.#waiting = undefined;
    this.#taken(bytes);
    this.#options.onRoom(this.#shared.now() - since);
  }

  goesOn(): void {
    this.#since = this.#shared.now();
  }

  lose(): void {
    const bytes = Math.max(this.bytes, this.wants);
    this.#losses += 1;
    this.#coming = 0;
    this.#kept = 0;
    this.#waiting ??= { bytes, since: this.#shared.now() };
    this.#options.onLost();
    this.#shared.changed(this);
  }

  #taken(bytes: number): void {
    if (this.bytes === 0) this.#since = this.#shared.now();
    this.#coming = bytes;
  }
}
