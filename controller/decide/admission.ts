import { defined } from '../../core/defined.ts';
import { LABEL_POOL, podName } from '../../core/resources/names.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { World } from '../observed/world.ts';
import { environmentOf } from '../settings/environment.ts';
import { settingsDigest } from '../settings/session-digest.ts';
import type { Admission } from './draft.ts';

/** The admission of a session: its next incarnation, with a slot and a pod. */

/** The next incarnation of a session for which there is a slot: with the first pod of a pool that it can claim, or a pod of its own. */
export function nextIncarnation({ session, warm }: World): Admission {
  const incarnation = (session.status?.incarnation ?? 0) + 1;
  const [claim] = warm?.pods ?? [];
  return claim
    ? { incarnation, pod: claim.metadata.name, claim }
    : { incarnation, pod: podName(session.metadata.uid, incarnation) };
}

/** Fields of the status that an admission replaces: the incarnation, its pod, and what the pod is made from. */
export function admissionFields(
  world: World,
  { incarnation, pod, claim }: Admission,
): Pick<
  SessionStatus,
  | 'incarnation'
  | 'podName'
  | 'podUID'
  | 'agentFiles'
  | 'environment'
  | 'classGeneration'
  | 'settingsDigest'
  | 'restartRequest'
> {
  const { session, class: sessionClass, agentFiles } = world;
  const { restartRequest } = session.spec;
  const files = [...(agentFiles ?? [])].map(([configMap, digest]) => ({ configMap, digest }));
  const found = environmentOf(world, sessionClass?.spec.runner ?? 'Embedded');
  return {
    incarnation,
    podName: pod,
    ...(claim ? { podUID: claim.metadata.uid } : {}),
    ...(files.length > 0 ? { agentFiles: files } : {}),
    ...(found && 'taken' in found ? { environment: found.taken } : {}),
    ...(sessionClass?.metadata.generation ? { classGeneration: sessionClass.metadata.generation } : {}),
    settingsDigest: settingsDigest(session.spec),
    ...defined({ restartRequest }),
  };
}

/** Message of the condition `Ready` from the admission on: which pod it is, and why it is not one of a pool. */
export function startMessage(world: World, { pod, claim }: Admission): string {
  if (!claim) return `Pod ${pod} is created and its runner is awaited.${whyCold(world)}`;
  const stillStarts = world.warm?.starting.has(pod) ? ' while it starts' : '';
  return `Pod ${pod} is taken from pool "${claim.metadata.labels?.[LABEL_POOL]}"${stillStarts}, and its runner is awaited.`;
}

/** A sentence for sessions that start cold beside a pool of their class, with a space before it. */
function whyCold({ warm, session }: World): string {
  if (!warm) return '';
  if (!warm.fits)
    return ` The pods of pool "${warm.pool}" do not fit: the session has an image, resources, a volume or Secrets of its own.`;
  if (session.status?.startFailures) return '';
  return ` No pod of pool "${warm.pool}" was ready.`;
}
