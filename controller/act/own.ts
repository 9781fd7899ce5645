import { TransportError } from '../../core/kube/errors.ts';
import { sessions } from '../../core/resources/kinds.ts';
import { podName } from '../../core/resources/names.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import { withCondition } from '../decide/conditions.ts';
import type { CachedSession, World } from '../world.ts';
import type { Pass } from './context.ts';
import { writeStatus } from './write-status.ts';

/**
 * Takes a place, then writes the next incarnation and its pod's name at the version decided upon. Whoever wins this write
 * owns the incarnation; the loser's place is given back.
 */
export async function ownIncarnation({ effects, world, key, signal, memory }: Pass): Promise<void> {
  const { api, caches, ledger, log } = effects;
  const { session } = world;
  const { namespace, name } = session.metadata;
  const incarnation = (session.status?.incarnation ?? 0) + 1;
  const pod = podName(session.metadata.uid, incarnation);
  const applicant = { key, class: session.spec.class, since: waitingSince(session) };
  if (!ledger.reserve(applicant, pod)) {
    ledger.wait(applicant);
    return;
  }
  try {
    caches.sawSession(await writeStatus(api, sessions, session.metadata, owned(world, incarnation, pod), signal));
    memory.confirmedGone = undefined;
    memory.logRead = undefined;
    memory.suspension = undefined;
    memory.startProblem = undefined;
    memory.unstored = undefined;
    memory.suspendAgainAt = undefined;
    log.info({ session: key, uid: session.metadata.uid, incarnation }, 'session admitted');
  } catch (error) {
    if (error instanceof TransportError) {
      // Whether it was written is not known; only a live read tells, and until then the place stays taken.
      caches.sawSession(await api.get(sessions, { namespace: namespace as string, name }, { signal }));
    }
    ledger.settle(key);
    throw error;
  }
  ledger.settle(key);
}

export function waitingSince(session: CachedSession): number {
  return Date.parse(session.status?.queue?.since ?? session.metadata.creationTimestamp);
}

function owned({ session, class: sessionClass, now }: World, incarnation: number, pod: string): SessionStatus {
  const { podUID: _p, queue: _q, currentTurn: _c, ...rest } = session.status ?? {};
  const generation = session.metadata.generation;
  const admitted = {
    status: 'True',
    reason: 'Admitted',
    message: `Incarnation ${incarnation} holds a running place.`,
  } as const;
  const starting = {
    status: 'False',
    reason: 'Starting',
    message: `Pod ${pod} is created and its runner is awaited.`,
  } as const;
  let conditions = withCondition(rest.conditions, 'Admitted', admitted, now, generation);
  conditions = withCondition(conditions, 'Ready', starting, now, generation);
  conditions = withCondition(conditions, 'Suspended', starting, now, generation);
  return {
    ...rest,
    phase: 'Starting',
    incarnation,
    podName: pod,
    conditions,
    ...(sessionClass?.metadata.generation ? { classGeneration: sessionClass.metadata.generation } : {}),
  };
}
