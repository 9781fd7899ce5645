import { defined } from '../../core/defined.ts';
import type { Granted } from '../../core/resources/turn.ts';
import type { CachedTurn, World } from '../observed/world.ts';
import { timeoutMs, timeoutText, toMs } from './timeouts.ts';

/** Source of a turn's timeouts. */
type Rules = Pick<World, 'class'> & { session: Pick<World['session'], 'spec'> };

/** Timeouts of a turn that has begun, in milliseconds; Infinity: none. */
export interface TurnLimits {
  turnMs: number;
  stallMs: number;
  startMs: number;
  approvalMs: number;
  persistMs: number;
}

/**
 * The timeouts that a turn gets when it begins, and the users who may not decide on what it asks. They are written into its status then, and only they count from then
 * on: the session's and the class's settings may change, become invalid or be deleted while the turn runs. Absent:
 * none. A turn that asks for more than its class allows has been refused before.
 */
export function grant(turn: Pick<CachedTurn, 'spec'>, { session: { spec }, class: sessionClass }: Rules): Granted {
  const granted = {
    timeout: turn.spec.timeout ?? timeoutText('turn', spec, sessionClass),
    stall: timeoutText('stall', spec, sessionClass),
    start: timeoutText('start', spec, sessionClass),
    approval: timeoutText('approval', spec, sessionClass),
    persist: timeoutText('persist', spec, sessionClass),
    notBy: sessionClass?.spec.selfApproval === 'Refused' ? requesters(turn.spec, spec) : undefined,
  };
  return Object.fromEntries(Object.entries(granted).filter(([, setting]) => setting !== undefined));
}

/** The users who asked for a turn, as far as they are known. */
function requesters(turn: CachedTurn['spec'], session: World['session']['spec']): string[] {
  return [...new Set([turn.requester, session.requester])].filter((name) => name !== undefined);
}

/**
 * Timeouts of a turn in milliseconds. A turn begun by an earlier version has no grant; the present settings count for
 * it.
 */
export function limitsOf(turn: Pick<CachedTurn, 'spec' | 'status'>, rules: Rules): TurnLimits {
  const { timeout, stall, start, approval, persist } = turn.status.granted ?? grant(turn, rules);
  return {
    turnMs: toMs(timeout),
    stallMs: toMs(stall),
    startMs: toMs(start),
    approvalMs: toMs(approval),
    persistMs: toMs(persist),
  };
}

/**
 * Grant of a turn that has begun, which it keeps for its next attempts; undefined for a turn that has not. A turn that waits for its
 * first pod has a grant too, but only for the time that the pod may take to start.
 */
export function grantKept({ status }: Pick<CachedTurn, 'status'>): Granted | undefined {
  return status.attempt ? status.granted : undefined;
}

/**
 * Grant of a turn that waits for its pod. A turn that has not begun before keeps the time for the pod's start, as it was
 * when the turn first said that it waits; the rest is granted anew when it begins.
 */
export function grantStart(turn: Pick<CachedTurn, 'spec' | 'status'>, rules: Rules): Granted {
  const kept = grantKept(turn);
  if (kept) return kept;
  const { start } = turn.status.granted ?? {};
  return { ...grant(turn, rules), ...defined({ start }) };
}

/** Timeout of a pod's start: granted to the turn that waits for the pod, else the session's own. */
export function startLimit(turn: CachedTurn | undefined, rules: Rules): number {
  return turn ? limitsOf(turn, rules).startMs : timeoutMs('start', rules.session.spec, rules.class);
}
