/** Bytes in the store, as base64. */
export interface Holding {
  states: number;
  /** Outputs, logs and artifacts. */
  history: number;
}

export interface ShareRule {
  /** Limit of the bytes of all namespaces together. */
  ceilingBytes: number;
  /** A namespace may grow while it holds no more than this times what is free. */
  factor: number;
  /** Most that the namespace may hold, however much is free. Default: no limit. */
  quotaBytes?: number;
}

/** Bytes that a namespace is to store. */
export interface Wanted {
  /** State: it may use all of the share. History: an output, a log or artifacts, which may use three quarters. */
  as: 'State' | 'History';
  bytes: number;
  /** Bytes of the stored state of the same session that this state is to replace. */
  replaced?: number;
}

/** Bytes in the store of what a turn left there last time. */
export interface Stored {
  state: number;
  history: number;
}

/** Fraction of a share that outputs, logs and artifacts may use. */
const HISTORY_FRACTION = 3 / 4;
/**
 * Multiple of the factor for a state that replaces another of its session: both are stored for a moment. A namespace whose
 * share has shrunk, because others have grown, can so replace its states.
 */
const REPLACING = 4;

/**
 * Returns the bytes that a namespace may hold where the others hold `othersBytes`: half of the rest with the factor 1, and no more than its
 * quota.
 */
export function shareOf(
  { ceilingBytes, factor, quotaBytes = Number.POSITIVE_INFINITY }: ShareRule,
  othersBytes: number,
): number {
  return Math.min(quotaBytes, Math.max(0, ceilingBytes - othersBytes) / (1 + 1 / factor));
}

/** Reports whether a namespace that holds `held` may store what is wanted, where the others hold `othersBytes`. */
export function fitsShare(rule: ShareRule, held: Holding, othersBytes: number, wanted: Wanted): boolean {
  const share = shareOf(rule, othersBytes);
  const { as, bytes, replaced = 0 } = wanted;
  const next = held.states + held.history + bytes;
  if (as === 'History') return next <= share && held.history + bytes <= share * HISTORY_FRACTION;
  if (next <= share) return true;
  if (replaced === 0) return false;
  // The quota does not count what is replaced: a namespace that has used all of it could otherwise store no later state.
  const both = shareOf({ ceilingBytes: rule.ceilingBytes, factor: rule.factor * REPLACING }, othersBytes);
  return next <= both && (bytes <= replaced || next - replaced <= share);
}

/**
 * Reports whether the session's last content would be refused because of the other content of its namespace. Content that
 * would not fit beside the session's own is its own trouble.
 */
export function isShort(rule: ShareRule, held: Holding, othersBytes: number, last: Stored): boolean {
  const own = { states: last.state, history: last.history };
  return !fitsAgain(rule, held, othersBytes, last) && fitsAgain(rule, own, othersBytes, last);
}

function fitsAgain(rule: ShareRule, held: Holding, othersBytes: number, { state, history }: Stored): boolean {
  const fits = (wanted: Wanted, now: Holding) => wanted.bytes === 0 || fitsShare(rule, now, othersBytes, wanted);
  if (!fits({ as: 'State', bytes: state, replaced: state }, held)) return false;
  // The replaced state is removed before any history.
  return fits({ as: 'History', bytes: history }, held);
}
