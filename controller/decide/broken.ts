import { AssertionError } from 'node:assert';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { CachedTurn, Failing, World } from '../observed/world.ts';

const MOST_FAILURES = 5;
/**
 * Minimum time over which failures repeat: events can requeue a session at once, and failures within this time may have
 * one passing cause.
 */
const LEAST_MS = 1_000;

/**
 * Reports whether an error is a programming error, which a retry cannot mend, unlike an answer of the API server or of
 * a store.
 */
export function isProgrammingError(error: unknown): error is Error {
  return (
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError ||
    error instanceof AssertionError
  );
}

/** Counts one more failure; `isEnough`: the turn that it is about is to be ended. */
export function failedAgain(before: Failing | undefined, now: number): { failing: Failing; isEnough: boolean } {
  const failing = { count: (before?.count ?? 0) + 1, since: before?.since ?? now };
  return { failing, isEnough: failing.count >= MOST_FAILURES && now - failing.since >= LEAST_MS };
}

/**
 * A turn that alone makes decisions about the session fail: `decide` is tried with one turn after the other, because its error does
 * not tell which of them it is about.
 */
export function culprit(world: World, decide: (world: World) => unknown): CachedTurn | undefined {
  const fails = (turns: CachedTurn[]) => {
    try {
      decide({ ...world, turns });
      return false;
    } catch {
      return true;
    }
  };
  if (fails([])) return undefined;
  return world.turns.find((turn) => !isTerminal(turn.status?.phase) && fails([turn]));
}

/** The running or else the next turn, as far as turns can be ordered at all. */
export function currentTurn(turns: readonly CachedTurn[]): CachedTurn | undefined {
  const live = turns.filter(({ status }) => !isTerminal(status?.phase));
  const order = ({ status, metadata }: CachedTurn) => [
    status?.index ?? Number.MAX_SAFE_INTEGER,
    Date.parse(metadata.creationTimestamp),
    Number(metadata.resourceVersion),
  ];
  return live.toSorted((a, b) => {
    const [left, right] = [order(a), order(b)];
    const at = left.findIndex((value, i) => value !== right[i]);
    return at === -1 ? 0 : (left[at] as number) - (right[at] as number);
  })[0];
}
