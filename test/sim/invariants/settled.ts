import { pods } from '../../../core/kube/resources.ts';
import { environments, type StoredSession, type StoredTurn, sessions, turns } from '../../../core/resources/kinds.ts';
import { LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { type Facts, ownerOf } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { unsettledPools } from './pools.ts';

/** Returns what is still to be done; empty once everything has settled. */
export function unsettled(facts: Facts): string[] {
  const left: string[] = [];
  const { server } = facts;
  for (const turn of server.list(turns)) {
    if (isTerminal(turn.status?.phase) || isBehindRoom(facts, turn)) continue;
    left.push(`turn ${turn.metadata.name} is ${turn.status?.phase ?? 'new'}`);
  }
  for (const session of server.list(sessions)) {
    if (facts.turnsOf(session.metadata.uid).some((turn) => waitsForRoom(facts, turn))) continue;
    const why = restless(facts, session);
    if (why) left.push(`session ${session.metadata.name}: ${why}`);
  }
  for (const { metadata, status } of server.list(environments)) {
    const { reason } = status?.conditions?.find(({ type }) => type === 'Ready') ?? {};
    if (!status?.phase || status.phase === 'Building')
      left.push(`environment ${metadata.name} is ${status?.phase ?? 'new'}`);
    // Its owner replaces it. One that found no room is built again when the store has room.
    else if (status.phase === 'Failed' && reason !== 'StoreFull')
      left.push(`environment ${metadata.name} has failed: ${reason}`);
  }
  for (const { metadata } of server.list(pods)) {
    const session = metadata.labels?.[LABEL_SESSION_UID];
    if (session && facts.session(session)?.status?.podName !== metadata.name)
      left.push(`pod ${metadata.name} belongs to no incarnation`);
  }
  return [...left, ...unsettledPools(facts)];
}

/** Reports whether the turn waits for room in the store, which comes only after the world is at rest. */
function waitsForRoom(facts: Facts, { status }: StoredTurn): boolean {
  const reason = status?.conditions?.find(({ type }) => type === 'Finished')?.reason;
  return !facts.hasRoom && status?.phase === 'Queued' && reason === 'StoreShareUsed';
}

/** Reports whether the turn waits for room, or for a turn of its session that does. */
function isBehindRoom(facts: Facts, turn: StoredTurn): boolean {
  if (turn.status?.phase !== 'Queued') return false;
  return facts.turnsOf(ownerOf(turn) ?? '').some((other) => waitsForRoom(facts, other));
}

function restless(facts: Facts, session: StoredSession): string | undefined {
  const { metadata, spec, status } = session;
  if (metadata.deletionTimestamp) return 'is being deleted';
  if (!status?.phase) return 'has no status';
  if (status.observedGeneration !== metadata.generation) return `generation ${metadata.generation} is not observed`;
  if (status.queue) return `waits: ${status.queue.reason}`;
  if (!['Ready', 'Suspended', 'Finished'].includes(status.phase)) return `is ${status.phase}`;
  if (spec.suspend && status.phase === 'Ready') return 'is to be suspended';
  if (status.phase === 'Ready' && facts.isToRestart(session)) return 'is to be restarted';
  if (facts.isToReplaceRunner(session)) return 'has a runner that the present controller does not understand';
  const { id, afterTurn = 0 } = status.suspendHandled ?? {};
  const indices = facts.turnsOf(metadata.uid).map((turn) => turn.status?.index ?? 0);
  const later = Math.max(status.lastTurn?.index ?? 0, ...indices) > afterTurn;
  if (spec.suspendRequest && id !== spec.suspendRequest) return 'has a request to suspend that was not seen';
  const pod = status.podName && facts.server.get(pods, metadata.namespace, status.podName);
  if (status.phase === 'Ready' && (!pod || pod.metadata.deletionTimestamp || pod.status?.phase !== 'Running'))
    return `is Ready with a pod that is ${pod ? (pod.status?.phase ?? 'new') : 'not there'}`;
  if (pod && status.phase === 'Ready' && !facts.kubelets.isAlive(pod.metadata.uid))
    return 'is Ready with a dead container';
  if (status.phase !== 'Ready' && status.podName) return `is ${status.phase} and holds ${status.podName}`;
  const { ttlAfterFinished, ttlAfterSuspended, history, persistence, timeouts } = spec;
  if (status.phase === 'Finished' && ttlAfterFinished) return 'is to be deleted, as it is finished';
  if (status.phase === 'Suspended' && ttlAfterSuspended) return 'is to be deleted, as it is suspended';
  const isWorkedIn = facts.kubelets.container(pod ? pod.metadata.uid : '')?.work?.open;
  if (status.phase === 'Ready' && timeouts?.idle && persistence?.state !== false && !isWorkedIn)
    return 'is to be reclaimed';
  // A turn that asked, or a later turn, wakes the session again after the request was carried out, even if deleted now.
  const asked = [...facts.runs.values()].flat().some((run) => run.sessionUID === metadata.uid && run.asked.length > 0);
  const carriedOut = facts.requests.of(metadata.uid, spec.suspendRequest ?? '');
  const woken = carriedOut && (asked || carriedOut.later);
  if (spec.suspendRequest && !later && !woken && status.phase === 'Ready') return 'was asked to suspend';
  const ended = facts.turnsOf(metadata.uid).length;
  // Further turns of a session with `turns: One` are kept until the session is deleted.
  if (spec.turns === 'Many' && history?.turns !== undefined && ended > history.turns)
    return `has ${ended} turns, ${history.turns} are kept`;
  if (spec.turns === 'Many' && (status.turns?.total ?? 0) < ended)
    return `${ended} turns ended, ${status.turns?.total} are counted`;
  // The total alone does not tell: it still has turns that were counted and then deleted.
  const last = Math.max(0, ...facts.turnsOf(metadata.uid).map((turn) => turn.status?.index ?? 0));
  if (spec.turns === 'Many' && (status.lastTurn?.index ?? 0) < last) return `has not counted its turn ${last}`;
  return undefined;
}

/** Checks, when settled, that every session's status has its last state and counts its turns. */
export const consistent: MakeInvariant = (facts) => ({
  settled() {
    for (const { metadata, status, spec } of facts.server.list(sessions)) {
      const own = facts.turnsOf(metadata.uid).filter((turn) => ownerOf(turn) === metadata.uid);
      if (facts.left(metadata.uid)?.digest !== status?.state?.digest)
        facts.fail('consistent', `session ${metadata.name} does not have its last committed state`);
      if (spec.turns !== 'Many') continue;
      const succeeded = own.filter((turn) => turn.status?.phase === 'Succeeded').length;
      if ((status?.turns?.succeeded ?? 0) < succeeded)
        facts.fail(
          'consistent',
          `session ${metadata.name} counts ${status?.turns?.succeeded} successes of ${succeeded}`,
        );
    }
  },
});
