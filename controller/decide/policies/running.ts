import { wasNeverSent } from '../../link/view.ts';
import type { CachedTurn } from '../../world.ts';
import type { Draft, Policy } from '../draft.ts';
import { wake } from '../draft.ts';
import { DEFAULT_START_MS, DEFAULT_TURN_MS, isProblem, turnTimeout } from '../effective.ts';
import { ended } from '../turn-status.ts';

/** The running turn: its result, its cancellation, its time-out. */

/** What the runner gets beyond a turn's time-out, or after a cancellation, before its pod is deleted. */
export const STOP_GRACE_MS = 20_000;

/** A delivered result is committed; one that belongs to no running turn is only acknowledged. */
export const collect: Policy = (draft) => {
  const delivery = draft.world.link?.delivery;
  if (!delivery) return undefined;
  const { turn: uid, attempt } = delivery.result.message;
  const turn = draft.turns.running;
  if (turn && turn.metadata.uid === uid && turn.status.attempt === attempt) {
    draft.actions.push({ do: 'Commit', turn, delivery });
    return 'Stop';
  }
  draft.actions.push({ do: 'Acknowledge', delivery });
  return 'Stop';
};

/** Milliseconds that the turn may run. */
export function timeoutOf(draft: Draft, own: string | undefined): number {
  if (isProblem(draft.settings)) return DEFAULT_TURN_MS;
  return turnTimeout(own, draft.settings, draft.world.class);
}

/** When the turn was started at the latest: where the runner has not said so, its pod may still have had to start. */
function startOf({ world, settings }: Draft, turn: CachedTurn): number {
  const { started } = world.link ?? {};
  if (started?.turn === turn.metadata.uid) return Date.parse(started.at);
  const given = turn.status.conditions?.find((condition) => condition.type === 'Running')?.lastTransitionTime;
  return (
    Date.parse(given ?? turn.metadata.creationTimestamp) + (isProblem(settings) ? DEFAULT_START_MS : settings.startMs)
  );
}

/** The runner keeps the time-out; a pod that is past it and its grace is deleted. */
export const overdue: Policy = (draft) => {
  const { pod, link, now } = draft.world;
  const turn = draft.turns.running;
  if (!turn || !pod || turn.status.podUID !== pod.metadata.uid || !link) return undefined;
  const deadline = startOf(draft, turn) + timeoutOf(draft, turn.spec.timeout) + STOP_GRACE_MS;
  if (now < deadline) {
    wake(draft, deadline);
    return undefined;
  }
  const message = 'The turn ran past its time-out and its pod did not stop it; the pod was deleted.';
  draft.actions.push(
    { do: 'DeletePod', pod, why: 'turn past its time-out' },
    { do: 'WriteTurn', turn, status: ended(turn, { phase: 'TimedOut', reason: 'TurnTimedOut', message }, now) },
  );
  return 'Stop';
};

/** A running turn is cancelled by its runner; one that no runner has seen ends at once. */
export const cancel: Policy = (draft) => {
  const { pod, link, now } = draft.world;
  const turn = draft.turns.running;
  if (!turn?.spec.cancel || !pod) return undefined;
  const cancelled = (message: string) => ended(turn, { phase: 'Cancelled', reason: 'Cancelled', message }, now);
  const never = wasNeverSent(link, pod.metadata.uid, turn.metadata.uid);
  if (never || (link?.refused?.code === 'UnknownTurn' && link.cancelSent?.turn === turn.metadata.uid)) {
    draft.actions.push({ do: 'WriteTurn', turn, status: cancelled('The turn was cancelled before it ran.') });
    return 'Stop';
  }
  if (link?.phase !== 'Bound') return undefined;
  if (link.cancelSent?.turn !== turn.metadata.uid) {
    draft.actions.push({ do: 'CancelTurn', turn: turn.metadata.uid });
    return undefined;
  }
  const deadline = link.cancelSent.at + STOP_GRACE_MS;
  if (now < deadline) {
    wake(draft, deadline);
    return undefined;
  }
  draft.actions.push(
    { do: 'DeletePod', pod, why: 'turn not cancelled in time' },
    { do: 'WriteTurn', turn, status: cancelled('The turn did not stop when it was cancelled; its pod was deleted.') },
  );
  return 'Stop';
};

/** What the runner works on although its Turn is gone, or has ended without it, is stopped. */
export const unwanted: Policy = (draft) => {
  const { pod, link, now } = draft.world;
  const active = link?.phase === 'Bound' ? link.active : undefined;
  if (!pod || pod.metadata.deletionTimestamp || !active) return undefined;
  if (draft.turns.live.some((turn) => turn.metadata.uid === active)) return undefined;
  if (link?.cancelSent?.turn !== active) {
    draft.actions.push({ do: 'CancelTurn', turn: active });
    return 'Stop';
  }
  const deadline = link.cancelSent.at + STOP_GRACE_MS;
  if (now >= deadline) draft.actions.push({ do: 'DeletePod', pod, why: 'it works on a turn that is gone' });
  else wake(draft, deadline);
  return 'Stop';
};
