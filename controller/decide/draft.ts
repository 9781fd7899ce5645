import type { Subject } from '../settings/subject.ts';
import type { Problem } from '../world/world.ts';
import type { Action } from './actions.ts';

/** What the policies add up to. */
export interface Draft extends Subject {
  actions: Action[];
  /** The session wants a place and has none. */
  waiting: boolean;
  /** The pod is gone for good: the status lets go of it. */
  released: boolean;
  /** The pod is being given up to suspend the session. */
  suspending: boolean;
  /** The present incarnation could not be started, and why: the status counts it. */
  startFailed: Problem | undefined;
  /** What keeps the session from becoming ready, as far as a policy found out. */
  problem: Problem | undefined;
  /** When to look again at the latest, milliseconds since the epoch. */
  wakeAt: number;
}

/** A policy looks at one concern; 'Stop' ends the list for this pass. */
export type Policy = (draft: Draft) => 'Stop' | undefined;

export function wake(draft: Draft, at: number): void {
  draft.wakeAt = Math.min(draft.wakeAt, at);
}
