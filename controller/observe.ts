import type { StoredPod } from '../core/kube/builtin.ts';
import { podName } from '../core/resources/names.ts';
import { isTerminal } from '../core/resources/turn.ts';
import type { Effects, SessionMemory } from './act/context.ts';
import { unreadableTurn } from './caches/caches.ts';
import { applicantOf } from './capacity/applicant.ts';
import { highestState } from './world/highest-state.ts';
import { isOwn, ownTurns } from './world/own-turns.ts';
import type { CachedSession, CachedTurn, Installation, NodeFacts, World } from './world/world.ts';

/** Gathers what a decision about the session depends on, from caches and memory alone. */
export function observe(
  effects: Effects,
  installation: Installation,
  key: string,
  session: CachedSession,
  memory: SessionMemory,
): World {
  const { caches, links, ledger, clock } = effects;
  const { uid, name } = session.metadata;
  const namespace = session.metadata.namespace as string;
  const present = session.status?.podName;
  const pods = caches.podsOf(uid);
  const known = session.status?.podUID;
  // A pod's name can be had again; it is the incarnation's own as long as its uid is not known to be another.
  const isPresent = ({ metadata }: StoredPod) => metadata.name === present && (known ?? metadata.uid) === metadata.uid;
  const pod = pods.find(isPresent);
  if (pod) memory.lastPod = pod;
  const turns = turnsOf(session, withoutBroken(caches.turnsNaming(namespace, name), memory), memory);
  const { live } = ownTurns(session, turns);
  const groupSince = Date.parse((live[0] ?? session).metadata.creationTimestamp);
  const applicant = applicantOf(session, live);
  const nodes = nodesOf(effects, pods);
  const node = pod && nodes.get(pod.metadata.uid);
  const namespaceLabels = caches.namespaceLabels(namespace);
  const preemptFor = present ? ledger.preemptFor(key) : undefined;
  return {
    now: clock.now(),
    session,
    turns,
    approvals: turns.flatMap(({ metadata }) => caches.approvalsNaming(namespace, metadata.name)),
    class: caches.class(session.spec.class),
    ...(namespaceLabels ? { namespaceLabels } : {}),
    pod,
    strays: pods.filter((other) => other !== pod),
    link: links.get(pod?.metadata.uid ?? session.status?.podUID)?.view,
    memory,
    applicant,
    slot: present ? 'Held' : ledger.slot(applicant, nextPod(session)),
    groupSince,
    group: ledger.groups.view(key, groupSince),
    ...(preemptFor ? { preemptFor } : {}),
    ...(node ? { node } : {}),
    nodes,
    installation,
    settled: effects.leader.hasSettled(),
  };
}

/** A turn at which reconciles fail is seen as one of which only the end can be written. */
function withoutBroken(turns: CachedTurn[], { broken }: SessionMemory): CachedTurn[] {
  if (!broken?.size) return turns;
  const live = new Set(turns.filter(({ status }) => !isTerminal(status?.phase)).map(({ metadata }) => metadata.uid));
  for (const uid of broken.keys()) if (!live.has(uid)) broken.delete(uid);
  return turns.map((turn) => {
    const why = broken.get(turn.metadata.uid);
    return why === undefined ? turn : unreadableTurn(turn, why);
  });
}

/** A turn that has ended and is deleted before its session counts it has had its place, and left its state, all the same. */
function turnsOf(session: CachedSession, present: CachedTurn[], memory: SessionMemory): CachedTurn[] {
  const uids = new Set(present.map(({ metadata }) => metadata.uid));
  const deleted = ownTurns(session, memory.uncounted ?? []).uncounted.filter(({ metadata }) => !uids.has(metadata.uid));
  const turns = [...present, ...deleted];
  memory.uncounted = ownTurns(session, turns).uncounted;
  const own = present.filter((turn) => isOwn(session, turn));
  const written = session.status?.state;
  const last = highestState([written, memory.committed, ...own.map(({ status }) => status.state)]);
  memory.committed = last === written ? undefined : last;
  return turns;
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
