import type { Clock } from '../runtime.ts';
import { HEARTBEAT_MS, SILENCE_MS } from './frames.ts';

export interface LivenessOptions {
  clock: Clock;
  /** Sends a heartbeat, unless something else waits to be sent: that is a sign of life by itself. */
  beat: () => void;
  /** Called when nothing was heard for SILENCE_MS. */
  onSilence: () => void;
}

/** Heartbeats to the other side of a connection, and the watch over what is heard from there. */
export class Liveness {
  readonly #options: LivenessOptions;
  #heardAt = 0;
  #isPaused = false;
  #cancelBeat: () => void = () => {};
  #cancelSilence: () => void = () => {};

  constructor(options: LivenessOptions) {
    this.#options = options;
  }

  /** True while nothing is read from the other side, and so nothing can be heard. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Begins with both. */
  start(): void {
    this.heard();
    this.#armBeat();
    this.#armSilence(SILENCE_MS);
  }

  /** Notes that bytes came from the other side. */
  heard(): void {
    this.#heardAt = this.#options.clock.monotonic();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.heard();
  }

  /** Ends both. */
  stop(): void {
    this.#cancelBeat();
    this.#cancelSilence();
  }

  #armBeat(): void {
    this.#cancelBeat = this.#options.clock.setTimer(HEARTBEAT_MS, () => {
      this.#armBeat();
      this.#options.beat();
    });
  }

  #armSilence(ms: number): void {
    const { clock, onSilence } = this.#options;
    this.#cancelSilence = clock.setTimer(ms, () => {
      const left = this.#isPaused ? SILENCE_MS : this.#heardAt + SILENCE_MS - clock.monotonic();
      if (left > 0) this.#armSilence(left);
      else onSilence();
    });
  }
}
