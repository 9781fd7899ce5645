import type { StoredPod } from '../../core/kube/builtin.ts';
import { movedByClockJumps } from '../observed/clock-jumps.ts';
import type { CachedTurn, Problem } from '../observed/world.ts';
import type { Subject } from '../settings/subject.ts';
import type { Action } from './actions.ts';

/**
 * Sources of problems. The status shows one problem: that of the first source here which has any, because it is the
 * furthest on the way from the settings to a runner that takes turns.
 */
const PRECEDENCE = ['Binding', 'Pod', 'Creation', 'Slot', 'Deletion', 'FirstTurn', 'Settings'] as const;
type ProblemSource = (typeof PRECEDENCE)[number];

/** An incarnation that a session is about to take. */
export interface Admission {
  incarnation: number;
  /** Name of its pod. */
  pod: string;
  /** The pod of a pool that has this name, and has a slot already; absent: the pod is made, and takes a slot. */
  claim?: StoredPod;
}

/** Result of the policies, which they build up one after the other. */
export interface Draft extends Subject {
  actions: Action[];
  /** The session wants a slot and has none. */
  waiting: boolean;
  /** The session takes its next incarnation: the status says so, and the write of it admits the session. */
  admission?: Admission;
  /** The pod is gone for good: the status lets go of it. */
  released: boolean;
  /** The pod is being given up to suspend the session. */
  suspending: boolean;
  /** The present incarnation could not be started, and why: the status counts it. */
  startFailed: Problem | undefined;
  /** Problems that keep the session from becoming ready, by their source; see `problemOf`. */
  problems: Partial<Record<ProblemSource, Problem | undefined>>;
  /** Indices that waiting turns have after this decision. */
  indices: Map<CachedTurn, number>;
  /** Latest time of the next reconcile, milliseconds since the epoch. */
  wakeAt: number;
}

/** A policy decides about one concern; 'Stop' ends the list for this reconcile. */
export type Policy = (draft: Draft) => 'Stop' | undefined;

export function wake(draft: Draft, at: number): void {
  draft.wakeAt = Math.min(draft.wakeAt, at);
}

/**
 * Reports whether `ms` have passed since that monotonic time, and has it decided again when they have. A machine that slept
 * meanwhile, with the runner's or without, has not waited in that time.
 */
export function hasPassed(draft: Draft, since: number, ms: number): boolean {
  const { now, monotonic } = draft.world;
  const left = since + ms - monotonic;
  if (left > 0) wake(draft, now + left);
  return left <= 0;
}

/** A time since which something has waited or run, moved by the time in which nothing did; see `movedByClockJumps`. */
export function waitedSince({ world: { clockJumps } }: Draft, at: number, heardAt?: number): number {
  return movedByClockJumps(at, clockJumps, heardAt);
}

/** The problem that the status shows. */
export function problemOf({ problems }: Draft): Problem | undefined {
  const source = PRECEDENCE.find((name) => problems[name]);
  return source && problems[source];
}
