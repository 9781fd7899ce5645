import type { Effects, SessionMemory } from './act/context.ts';
import { waitingSince } from './act/own.ts';
import type { CachedSession, Installation, World } from './world.ts';

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
  const podName = session.status?.podName;
  const pods = caches.podsOf(uid);
  const pod = podName ? pods.find(({ metadata }) => metadata.name === podName) : undefined;
  const applicant = { key, class: session.spec.class, since: waitingSince(session) };
  return {
    now: clock.now(),
    session,
    turns: caches.turnsNaming(namespace, name),
    class: caches.class(session.spec.class),
    pod,
    strays: pods.filter(({ metadata }) => metadata.name !== podName),
    link: links.get(pod?.metadata.uid ?? session.status?.podUID)?.view,
    memory,
    place: podName ? 'Held' : ledger.place(applicant),
    installation,
  };
}
