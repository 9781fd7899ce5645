import type { Clock } from '../../core/runtime.ts';
import type { Figures } from '../observed/link-view.ts';
import type { Attachment } from './attachment.ts';

export interface HeartbeatOptions {
  clock: Clock;
  attachment: Pick<Attachment, 'silentSince' | 'failingMs' | 'failingSince' | 'expectAnswer' | 'answered' | 'rest'>;
  /** Last answer of any runner: `at` in monotonic milliseconds, shared by all links. */
  answers: { at: number };
  /** Sends a ping; returns the number of its control line. */
  sendPing(): number;
  /** Time at which the attach may be closed, monotonic milliseconds; Infinity while something is expected of the runner. */
  restAt(): number;
  /** Handler of each sign of life, called before the silence that it ends is reported as over. */
  onHeard(): void;
  /** Handler of a silence that may have changed. */
  onSilence(silence: Silence): void;
}

/** Silence of a runner; the fields are those of a `LinkView`, `unreachableMs` is 0 without failures. */
export interface Silence {
  silentSince: number | undefined;
  unreachableMs: number;
  othersAnswer: boolean;
}

const PING_MS = 30_000;
/**
 * Age of a running turn at the first ping for its progress; later pings come every `PING_MS`, also while frames come.
 */
const FIRST_FIGURES_MS = 10_000;

/** Pings a runner that is silent or whose turn runs, until its attach may rest, and notices when it owes an answer. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  /** Numbers of unanswered pings: an earlier leader's answers come over the same attach. */
  readonly #pings = new Set<number>();
  #cancelPing: () => void = () => {};
  /** Time of the last frame, and of the next ping for the running turn's progress (monotonic milliseconds). */
  #heardAt = 0;
  #figuresAt = Number.POSITIVE_INFINITY;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  /** Forgets the pings of an earlier attach: their answers do not come any more. */
  opened(): void {
    this.#pings.clear();
  }

  close(): void {
    this.#figuresAt = Number.POSITIVE_INFINITY;
    this.#cancelPing();
  }

  ping(): void {
    this.#pings.add(this.#options.sendPing());
  }

  /** Records an answer to a ping; returns false where an earlier leader has sent the ping, or it was answered before. */
  answers(ping: number): boolean {
    return this.#pings.delete(ping);
  }

  /** Records that a control line was sent that the runner answers. */
  expectAnswer(): void {
    this.#options.attachment.expectAnswer();
    this.updateSilence();
  }

  /** Records a sign of life: every answer that was owed has come. */
  heard(): void {
    const { clock, attachment, answers, onHeard } = this.#options;
    onHeard();
    attachment.answered();
    this.#heardAt = clock.monotonic();
    answers.at = this.#heardAt;
    this.updateSilence();
    this.#pingLater();
  }

  updateSilence(): void {
    const { attachment, answers, onSilence } = this.#options;
    const { silentSince, failingMs, failingSince = Number.POSITIVE_INFINITY } = attachment;
    onSilence({ silentSince, unreachableMs: failingMs, othersAnswer: answers.at >= failingSince });
  }

  turnStarted(): void {
    this.#askForFigures(FIRST_FIGURES_MS);
  }

  /** Plans the next ping for progress after an answer; without figures no turn runs. */
  reported(figures: Figures | undefined): void {
    const early = figures ? FIRST_FIGURES_MS - figures.runningMs : Number.POSITIVE_INFINITY;
    this.#askForFigures(early > 0 ? early : PING_MS);
  }

  /** Ends the pings for progress. */
  turnEnded(): void {
    if (Number.isFinite(this.#figuresAt)) this.#askForFigures(Number.POSITIVE_INFINITY);
  }

  #askForFigures(inMs: number): void {
    this.#figuresAt = this.#options.clock.monotonic() + inMs;
    this.#pingLater();
  }

  #pingLater(): void {
    const { clock } = this.#options;
    const at = Math.min(this.#heardAt + PING_MS, this.#figuresAt, this.#options.restAt());
    const forFigures = this.#figuresAt < this.#heardAt + PING_MS;
    this.#cancelPing();
    this.#cancelPing = clock.setTimer(Math.max(0, at - clock.monotonic()), () => {
      if (clock.monotonic() >= this.#options.restAt()) {
        // The first frame of the next attach plans the next ping.
        this.#options.attachment.rest();
        return;
      }
      // Frames that come before the answer must not trigger another ping.
      if (Number.isFinite(this.#figuresAt)) this.#figuresAt = clock.monotonic() + PING_MS;
      this.ping();
      // A ping for progress alone expects no answer in time: the machine may be busy with the turn.
      if (forFigures) this.#pingLater();
      else this.expectAnswer();
    });
  }
}
