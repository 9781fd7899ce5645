import type { StreamEvent } from './events.ts';
import { type SessionView, type TurnView, withoutPayload } from './views.ts';

/** Returns the event for the state of a session. */
export function sessionEvent({
  metadata,
  phase,
  reason,
  message,
  incarnation,
  podName,
  queue,
}: SessionView): StreamEvent {
  const data = { session: metadata.name, uid: metadata.uid, phase, reason, message, incarnation, podName, queue };
  return { type: 'session', data };
}

/** Returns the events for the state of a turn, without what the state `old` has sent already. */
export function turnEvents(turn: TurnView, old?: TurnView): StreamEvent[] {
  const { metadata, session, phase, reason, message, status } = turn;
  const { approval, usage, artifacts, artifactsLeftOut, ...rest } = status;
  const events: StreamEvent[] = [];
  const state = { session, turn: metadata.name, uid: metadata.uid, phase, reason, message, ...rest };
  const {
    approval: oldApproval,
    usage: oldUsage,
    artifacts: oldArtifacts,
    artifactsLeftOut: _leftOut,
    ...oldRest
  } = old?.status ?? {};
  const oldState = old && { ...state, phase: old.phase, reason: old.reason, message: old.message, ...oldRest };
  // Before the end of the turn, after which a follower may stop to read.
  if ((artifacts || artifactsLeftOut) && !(old && isSame(artifacts, oldArtifacts))) {
    const data = { session, turn: metadata.name, artifacts: artifacts ?? [], leftOut: artifactsLeftOut };
    events.push({ type: 'artifacts', data });
  }
  if (!isSame(state, oldState)) events.push({ type: 'turn', data: state });
  if (approval && !isSame(withoutPayload(approval), oldApproval && withoutPayload(oldApproval))) {
    const { id: requestId, prompt, payload, since, decided } = approval;
    const by = decided && { decision: decided.decision, note: decided.note, by: decided.by, at: decided.at };
    const data = { session, turn: metadata.name, requestId, prompt, payload, since, decided: by };
    events.push({ type: 'approval', data });
  }
  if (usage && !isSame(usage, oldUsage)) {
    events.push({ type: 'usage', data: { session, turn: metadata.name, usage } });
  }
  return events;
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
