import { ApiError, type ApiStatus, TransportError } from '../../../core/kube/errors.ts';
import type { Dice } from '../random.ts';

/** Probabilities of the API's faults; 0 in a world without faults. */
export interface FaultRates {
  /** A call is slow, before or after it is carried out. */
  slow: number;
  /** A call is refused before it has any effect: 429, 5xx, a refused connection. */
  refused: number;
  /** An answer never arrives; the write has taken effect, or has not. */
  lost: number;
  /** An update gets a 409 Conflict. */
  conflict: number;
  /** A watch breaks and loses the events that are under way. */
  watchBroken: number;
  /** A watch stays open and delivers nothing for a while. */
  watchStalled: number;
  /** An event arrives twice, or an earlier one arrives again. */
  watchRepeated: number;
  /** A pod creation is refused by a quota. */
  quota: number;
  /** Added to `refused` and `lost` for calls on Blobs. */
  store: number;
  /** An attach cannot be opened. */
  attach: number;
  /** A log cannot be read, or only in part. */
  log: number;
}

export const NO_FAULTS: FaultRates = {
  slow: 0,
  refused: 0,
  lost: 0,
  conflict: 0,
  watchBroken: 0,
  watchStalled: 0,
  watchRepeated: 0,
  quota: 0,
  store: 0,
  attach: 0,
  log: 0,
};

/** Draws which faults occur and how often, so that seeds test different things. */
export function drawRates(dice: Dice): FaultRates {
  const rate = (most: number) => (dice.chance(0.5) ? most * dice.uniform() ** 2 : 0);
  return {
    slow: rate(0.2),
    refused: rate(0.2),
    lost: rate(0.15),
    conflict: rate(0.1),
    watchBroken: rate(0.05),
    watchStalled: rate(0.03),
    watchRepeated: rate(0.05),
    quota: rate(0.3),
    store: rate(0.5),
    attach: rate(0.3),
    log: rate(0.5),
  };
}

export interface Call {
  verb: 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete';
  resource: string;
  name: string;
}

/** The course of one call. */
export interface Fate {
  /** Latency of the request and of the answer, milliseconds. */
  before: number;
  after: number;
  /** The answer instead of the real one; the call is not carried out. */
  refusal?: Error;
  /** The answer is lost; the caller's connection fails this many milliseconds after the request's arrival. */
  lostAfter?: number;
  /** The request is lost and has no effect. */
  neverArrives?: boolean;
}

const status = (code: number, reason: string, message: string): ApiStatus => ({ code, reason, message });

export function fateOf(call: Call, rates: FaultRates, dice: Dice): Fate {
  const fate: Fate = { before: dice.skewed(0.3, 8), after: dice.skewed(0.3, 8) };
  if (dice.chance(rates.slow)) fate.before += dice.skewed(20, 4000);
  if (dice.chance(rates.slow)) fate.after += dice.skewed(20, 4000);
  const write = call.verb !== 'get' && call.verb !== 'list';
  const extra = call.resource === 'blobs' ? rates.store : 0;
  if (write && call.verb === 'replace' && dice.chance(rates.conflict)) {
    const message = `Operation cannot be fulfilled on ${call.resource} "${call.name}": simulated`;
    return { ...fate, refusal: new ApiError(status(409, 'Conflict', message)) };
  }
  if (call.verb === 'create' && call.resource === 'pods' && dice.chance(rates.quota)) {
    const message = `pods "${call.name}" is forbidden: exceeded quota: simulated`;
    return { ...fate, refusal: new ApiError(status(403, 'Forbidden', message)) };
  }
  if (dice.chance(rates.refused + extra)) return { ...fate, refusal: refusal(dice) };
  if (dice.chance(rates.lost + extra / 2)) {
    const lostAfter = dice.chance(0.5) ? dice.skewed(1, 50) : dice.skewed(50, 20_000);
    return { ...fate, lostAfter, neverArrives: dice.chance(0.5) };
  }
  return fate;
}

function refusal(dice: Dice): Error {
  switch (dice.int(0, 5)) {
    case 0:
      return new ApiError(status(429, 'TooManyRequests', 'simulated'), dice.pick([undefined, 1000]));
    case 1:
      return new ApiError(status(500, 'InternalError', 'simulated'));
    case 2:
      return new ApiError(status(503, 'ServiceUnavailable', 'simulated'), dice.pick([undefined, 1000]));
    case 3:
      return new ApiError(status(504, 'Timeout', 'simulated'));
    default:
      return new TransportError('connection refused (simulated)', { sent: false });
  }
}
