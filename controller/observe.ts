import type { StoredPod } from '../core/kube/builtin.ts';
import { podName } from '../core/resources/names.ts';
import { isTerminal } from '../core/resources/turn-phases.ts';
import { clockJumpsOf } from '../core/runtime.ts';
import type { Effects } from './act/context.ts';
import { unreadableTurn } from './caches/slim.ts';
import { applicantOf } from './capacity/applicant.ts';
import { namedConfigMaps } from './observed/agent-files.ts';
import { withDeleted } from './observed/memory.ts';
import { ownTurns } from './observed/own-turns.ts';
import { isFromPool, isUnclaimed } from './observed/session-pods.ts';
import type { CachedSession, CachedTurn, Installation, NodeFacts, SessionMemory, World } from './observed/world.ts';
import { warmStart } from './pools/warm.ts';

/** The session's own objects, as the caches show them. */
export interface Observation {
  session: CachedSession;
  /** Turns that name the session. */
  turns: CachedTurn[];
  pods: StoredPod[];
  /** The pod of the present incarnation. */
  pod: StoredPod | undefined;
  /** The pod of a pool that the status names, while no session has claimed it. */
  unclaimed: StoredPod | undefined;
}

/** Looks the session's objects up in the caches. Assigns nothing. */
export function observe({ caches }: Effects, session: CachedSession, memory: SessionMemory): Observation {
  const { uid, name, namespace } = session.metadata;
  const present = session.status?.podName;
  const pods = caches.podsOf(uid);
  const known = session.status?.podUID;
  // Another pod may get the name. The pod is the incarnation's own while the status records no other uid.
  const isPresent = ({ metadata }: StoredPod) => metadata.name === present && (known ?? metadata.uid) === metadata.uid;
  const turns = caches.turnsNaming(namespace, name).map((turn) => withoutBroken(turn, memory));
  const pod = pods.find(isPresent);
  const named = pod || !isFromPool(present) ? undefined : caches.pod(namespace, present as string);
  const unclaimed = named && isUnclaimed(named) && isPresent(named) ? named : undefined;
  return { session, turns, pods, pod, unclaimed };
}

/** Completes an observation for a decision with memory, link, node and capacity. Assigns nothing. */
export function assess(
  effects: Effects,
  installation: Installation,
  key: string,
  { session, turns: present, pods, pod, unclaimed }: Observation,
  memory: SessionMemory,
): World {
  const { caches, links, ledger, clock } = effects;
  const { namespace } = session.metadata;
  const turns = withDeleted(present, memory.uncounted);
  const { live } = ownTurns(session, turns);
  const groupSince = Date.parse((live[0] ?? session).metadata.creationTimestamp);
  const nodes = nodesOf(effects, pods);
  const node = pod && nodes.get(pod.metadata.uid);
  const namespaceLabels = caches.namespaceLabels(namespace);
  const sessionClass = caches.class(session.spec.class);
  const hasPod = session.status?.podName !== undefined;
  const warm = hasPod ? undefined : warmStart(effects, installation, session);
  const names = warm?.pods.map(({ metadata }) => metadata.name) ?? [];
  const applicant = { ...applicantOf(session, live), ...(names.length > 0 ? { warm: names } : {}) };
  const shortOfRoom = effects.store.shortOf(namespace, session.metadata.uid, memory.historyStored ?? 0);
  const preemptFor = hasPod ? ledger.preemptFor(key) : undefined;
  return {
    now: clock.now(),
    monotonic: clock.monotonic(),
    clockJumps: clockJumpsOf(clock),
    session,
    turns,
    approvals: turns.flatMap(({ metadata }) => caches.approvalsNaming(namespace, metadata.name)),
    class: sessionClass,
    agentFiles: filesOf(effects, session, sessionClass),
    environment: session.spec.environment && caches.environment(namespace, session.spec.environment.name),
    ...(namespaceLabels ? { namespaceLabels } : {}),
    pod,
    ...(unclaimed ? { unclaimed } : {}),
    ...(warm ? { warm } : {}),
    otherPods: pods.filter((other) => other !== pod),
    link: links.get(pod?.metadata.uid ?? session.status?.podUID)?.view,
    memory,
    applicant,
    slot: hasPod ? 'Held' : ledger.assess(applicant, nextPod(session)),
    groupSince,
    group: ledger.groups.view(key, groupSince),
    ...(shortOfRoom ? { shortOfRoom } : {}),
    ...(preemptFor ? { preemptFor } : {}),
    ...(node ? { node } : {}),
    nodes,
    installation,
    leaderIsReady: effects.leader.isReady(),
  };
}

function filesOf({ caches }: Effects, session: CachedSession, sessionClass: World['class']): World['agentFiles'] {
  if (!caches.knowsAgentFiles(session.metadata.namespace)) return undefined;
  const found = new Map<string, string>();
  for (const name of namedConfigMaps(session, sessionClass)) {
    const digest = caches.agentFiles(session.metadata.namespace, name);
    if (digest !== undefined) found.set(name, digest);
  }
  return found;
}

/** A live turn at which reconciles fail keeps only the fields that its end needs. */
function withoutBroken(turn: CachedTurn, { broken }: SessionMemory): CachedTurn {
  const why = broken.get(turn.metadata.uid);
  return why === undefined || isTerminal(turn.status?.phase) ? turn : unreadableTurn(turn, why);
}

const nextPod = ({ metadata, status }: CachedSession) => podName(metadata.uid, (status?.incarnation ?? 0) + 1);

function nodesOf({ caches }: Effects, pods: StoredPod[]): Map<string, NodeFacts> {
  const known = new Map<string, NodeFacts>();
  for (const { metadata, spec } of pods) {
    const facts = caches.node(spec.nodeName);
    if (facts) known.set(metadata.uid, facts);
  }
  return known;
}
