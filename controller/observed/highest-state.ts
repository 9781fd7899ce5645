import type { StateRef } from '../../core/resources/schema.ts';

/** The highest state by (incarnation, sequence number): committed state only moves forward. */
export function highestState(states: readonly (StateRef | undefined)[]): StateRef | undefined {
  const candidates = states.filter((state) => state !== undefined);
  return candidates.reduce<StateRef | undefined>(
    (top, state) =>
      !top || state.incarnation > top.incarnation || (state.incarnation === top.incarnation && state.seq > top.seq)
        ? state
        : top,
    undefined,
  );
}
