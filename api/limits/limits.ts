/**
 * Limits of the API as a whole, and the share of them that one caller may take. Each replica counts for itself. The
 * metrics name the limit and never the caller, whose names are without number.
 */

import { MAX_ARTIFACT_BYTES } from '../../core/resources/limits.ts';
import { type Clock, delay } from '../../core/runtime.ts';
import type { ApiConfig } from '../config.ts';
import type { ApiMetrics } from '../metrics.ts';
import { Problem } from '../problems/problems.ts';
import { type Held, Memory } from './memory.ts';
import { Rate } from './rate.ts';
import { type Exceeded, Slots } from './slots.ts';

/**
 * Long requests: `waits` watch a turn, `streams` read from a kubelet, `contents` keep a whole content in memory until the
 * client has taken it; `commands`, `transfers` and `ports` have a connection into a session's pod. Each is one of the
 * `requests` as well.
 */
export type Hold = 'waits' | 'streams' | 'contents' | 'commands' | 'transfers' | 'ports';

const DOING = {
  requests: 'are under way',
  waits: 'wait for a turn',
  streams: 'read a log or events',
  contents: 'read an output, the log of a turn or an artifact',
  commands: 'run or read a command in a session',
  transfers: 'read or write files of a session',
  ports: 'are connected to a port of a session',
} as const;
type Kind = keyof typeof DOING;

/** Tokens per second that the cluster is asked about for the first time. */
const NEW_TOKENS = { perSecond: 50, burst: 200 };
/** Requests per second with the same token that is not accepted, or without one, that are refused at once. */
const UNAUTHENTICATED = { perSecond: 10, burst: 50 };
/**
 * Time for which a refusal is held back. A client that tries again as soon as it is refused would otherwise keep the
 * server from its other callers with refusals alone.
 */
const HOLD_BACK_MS = 1_000;

/** The request's part of the memory of all requests. */
export interface CallMemory {
  /** Holds `bytes` more until the answer has been sent. Throws a Problem. */
  hold(bytes: number): void;
  /** The same; returns false instead of a Problem. */
  tryHold(bytes: number): boolean;
  /** Holds `bytes` fewer. */
  release(bytes: number): void;
}

export class Limits {
  readonly #clock: Clock;
  readonly #memory: Memory;
  readonly #slots: Record<Kind, Slots>;
  readonly #rate: Rate;
  readonly #newTokens: Rate;
  readonly #unauthenticated: Rate;
  readonly #metrics: ApiMetrics;

  constructor({ clock, config, metrics }: { clock: Clock; config: ApiConfig; metrics: ApiMetrics }) {
    this.#clock = clock;
    const sharePercent = config.BERTH_API_CALLER_SHARE;
    this.#slots = {
      requests: new Slots({ max: config.BERTH_API_MAX_REQUESTS, sharePercent }),
      waits: new Slots({ max: config.BERTH_API_MAX_WAITS, sharePercent }),
      streams: new Slots({ max: config.BERTH_API_MAX_STREAMS, sharePercent }),
      contents: new Slots({ max: config.BERTH_API_MAX_CONTENTS, sharePercent }),
      commands: new Slots({ max: config.BERTH_API_MAX_COMMANDS, sharePercent }),
      transfers: new Slots({ max: config.BERTH_API_MAX_TRANSFERS, sharePercent }),
      ports: new Slots({ max: config.BERTH_API_MAX_PORTS, sharePercent }),
    };
    this.#memory = new Memory({ max: config.BERTH_API_MAX_BYTES, sharePercent, least: MAX_ARTIFACT_BYTES });
    this.#rate = new Rate(clock, { perSecond: config.BERTH_API_CALLER_RATE, burst: config.BERTH_API_CALLER_BURST });
    this.#newTokens = new Rate(clock, NEW_TOKENS);
    this.#unauthenticated = new Rate(clock, UNAUTHENTICATED);
    this.#metrics = metrics;
    metrics.heldBytes = () => this.#memory.used;
    metrics.openRequests = () => Object.entries(this.#slots).map(([kind, { used }]) => ({ kind, used }));
  }

  /** Counts a request of the caller. Resolves with the function that ends it; rejects with a Problem, held back. */
  async request(caller: string): Promise<() => void> {
    const waitMs = this.#rate.take(caller);
    try {
      if (waitMs === 0) return this.#take('requests', caller);
      this.#metrics.refused('rate', 'caller');
      const { perSecond, burst } = this.#rate;
      const text = `You may send ${perSecond} requests per second, and ${burst} at once after a pause. Send fewer.`;
      throw new Problem('TooManyRequests', text, { retryAfterSeconds: Math.ceil(waitMs / 1000) });
    } catch (problem) {
      await delay(this.#clock, HOLD_BACK_MS);
      throw problem;
    }
  }

  /** Counts a long request of the caller, beside `request`. Returns the function that ends it; throws a Problem. */
  hold(kind: Hold, caller: string): () => void {
    return this.#take(kind, caller);
  }

  /** Returns the memory of a request of the caller, and the function that frees it. */
  memory(caller: string): CallMemory & { free(): void } {
    const held: Held = this.#memory.open(caller);
    const refused = (bytes: number) => {
      const exceeded = held.resize(held.bytes + bytes);
      if (exceeded) this.#metrics.refused('bytes', exceeded);
      return exceeded;
    };
    return {
      hold: (bytes) => {
        const exceeded = refused(bytes);
        if (exceeded) throw this.#tooMuch(bytes, exceeded);
      },
      tryHold: (bytes) => refused(bytes) === undefined,
      release: (bytes) => void held.resize(Math.max(0, held.bytes - bytes)),
      free: () => held.free(),
    };
  }

  /**
   * Counts a token that the cluster has not accepted before. Rejects with a Problem, held back, when there are too many:
   * whoever sends tokens at random must not make the cluster review each of them.
   */
  async newToken(): Promise<void> {
    const waitMs = this.#newTokens.take('');
    if (waitMs === 0) return;
    this.#metrics.refused('tokens', 'all');
    const text = 'Too many unknown tokens come at once, so yours cannot be checked now. Try again later.';
    await delay(this.#clock, HOLD_BACK_MS);
    throw new Problem('Overloaded', text, { retryAfterSeconds: Math.ceil(waitMs / 1000) });
  }

  /** Counts a request with a token that is not accepted, by the token's digest; resolves when it may be refused. */
  async unauthenticated(digest: string): Promise<void> {
    if (this.#unauthenticated.take(digest) > 0) await delay(this.#clock, HOLD_BACK_MS);
  }

  #take(kind: Kind, caller: string): () => void {
    const taken = this.#slots[kind].take(caller);
    if (typeof taken === 'function') return taken;
    this.#metrics.refused(kind, taken);
    throw this.#problem(kind, taken);
  }

  #tooMuch(bytes: number, exceeded: Exceeded): Problem {
    const { max, share } = this.#memory;
    const again = { retryAfterSeconds: 1 };
    const wants = `The request needs ${bytes} bytes of memory for its body or its answer`;
    if (exceeded === 'all') {
      const text = `${wants}, and all requests together already have nearly ${max}; try again later.`;
      return new Problem('Overloaded', text, again);
    }
    const text = `${wants}, and your requests may have ${share} together; read the answers that you have asked for first.`;
    return new Problem('CallerLimit', text, again);
  }

  #problem(kind: Kind, exceeded: Exceeded): Problem {
    const { max, share } = this.#slots[kind];
    const again = { retryAfterSeconds: 1 };
    if (exceeded === 'all')
      return new Problem('Overloaded', `${max} requests ${DOING[kind]} already; try again later.`, again);
    const text = `${share} of your requests ${DOING[kind]} already, which is all that one caller may have; let one end first.`;
    return new Problem('CallerLimit', text, again);
  }
}
