import { defined } from '../../core/defined.ts';
import type { StoredPod } from '../../core/kube/builtin.ts';
import { LABEL_POOL } from '../../core/resources/names.ts';
import { reasons } from '../../core/resources/reasons.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import { ownTurns } from '../observed/own-turns.ts';
import type { World } from '../observed/world.ts';
import { environmentOf } from '../settings/environment.ts';
import { settingsDigest } from '../settings/session-digest.ts';
import { withCondition } from '../status/conditions.ts';
import { withPhaseSince, withSessionReason } from '../status/reason.ts';
import { statePersisted } from '../status/state-persisted.ts';

/** An incarnation that is admitted. `claim`: the pod of a pool that it takes. */
interface Admission {
  incarnation: number;
  pod: string;
  claim: StoredPod | undefined;
}

/**
 * Returns the status that admits a session. It says all that later decisions would say beside it, so that nothing has to be written
 * until the runner is bound.
 */
export function admittedStatus(world: World, { incarnation, pod, claim }: Admission): SessionStatus {
  const { session, class: sessionClass, agentFiles, memory, now } = world;
  const { podUID: _p, queue: _q, currentTurn: _c, agentFiles: _f, environment: _e, ...rest } = session.status ?? {};
  const { restartRequest } = session.spec;
  const files = [...(agentFiles ?? [])].map(([configMap, digest]) => ({ configMap, digest }));
  const found = environmentOf(world, sessionClass?.spec.runner ?? 'Embedded');
  const generation = session.metadata.generation;
  const admitted = {
    status: 'True',
    reason: 'Admitted',
    message: `Incarnation ${incarnation} holds a running slot.`,
  } as const;
  const starting = {
    status: 'False',
    reason: 'Starting',
    message: claim
      ? `Pod ${pod} is taken from pool "${claim.metadata.labels?.[LABEL_POOL]}"${world.warm?.starting.has(pod) ? ' while it starts' : ''}, and its runner is awaited.`
      : `Pod ${pod} is created and its runner is awaited.${whyCold(world)}`,
  } as const;
  let conditions = withCondition(rest.conditions, 'Admitted', admitted, now, generation);
  conditions = withCondition(conditions, 'Ready', starting, now, generation);
  const plain = { ...starting, message: reasons.Starting };
  conditions = withCondition(conditions, 'Suspended', plain, now, generation);
  if (session.spec.turns === 'One') conditions = withCondition(conditions, 'Finished', plain, now, generation);
  const next: SessionStatus = {
    ...rest,
    turns: { total: 0, succeeded: 0, failed: 0, ...rest.turns },
    observedGeneration: generation ?? 0,
    phase: 'Starting',
    incarnation,
    podName: pod,
    ...(claim ? { podUID: claim.metadata.uid } : {}),
    conditions,
    ...(files.length > 0 ? { agentFiles: files } : {}),
    ...(found && 'taken' in found ? { environment: found.taken } : {}),
    ...(sessionClass?.metadata.generation ? { classGeneration: sessionClass.metadata.generation } : {}),
    settingsDigest: settingsDigest(session.spec),
    ...defined({ restartRequest }),
  };
  const subject = {
    world: { ...world, memory: { ...memory, incarnation: {} } },
    turns: ownTurns(session, world.turns),
  };
  next.conditions = withCondition(conditions, 'StatePersisted', statePersisted(subject, next), now, generation);
  return withPhaseSince(withSessionReason(next), session.status, now);
}

/** A sentence for sessions that start cold beside a pool of their class, with a space before it. */
function whyCold({ warm, session }: World): string {
  if (!warm) return '';
  if (!warm.fits)
    return ` The pods of pool "${warm.pool}" do not fit: the session has an image, resources, a volume or Secrets of its own.`;
  if (session.status?.startFailures) return '';
  return ` No pod of pool "${warm.pool}" was ready.`;
}
