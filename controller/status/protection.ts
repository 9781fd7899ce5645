import type { Reason } from '../../core/resources/reasons.ts';
import type { Protection } from '../../core/resources/sandbox.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { LinkView } from '../observed/link-view.ts';
import type { World } from '../observed/world.ts';
import { type ConditionValue, conditionValue } from './conditions.ts';

/**
 * Protections of a session against its own agent, as its runner reports them: one condition each. A class may require
 * them. They guard against mistakes, as a hostile image can report what it likes.
 */

/** Reason of a protection that the runner reports not to have. */
export const LACKS: Readonly<Record<Protection, Reason>> = {
  RunnerHardened: 'RunnerNotHardened',
  AgentContained: 'AgentNotContained',
};

/** Report of the runner of the session's pod, as far as this leader has received it. */
function report(link: LinkView | undefined): Record<Protection, boolean> | undefined {
  if (!link?.bound) return undefined;
  const { hardened, containment } = link.bound;
  return { RunnerHardened: hardened, AgentContained: containment === 'Keeper' };
}

/**
 * Reports whether the present pod has the protection; undefined while that is not known. A report outlives its leader in
 * the status, where it is reset with the pod.
 */
export function hasProtection(
  { link, session }: Pick<World, 'link' | 'session'>,
  type: Protection,
): boolean | undefined {
  const reported = report(link);
  if (reported) return reported[type];
  const written = session.status?.conditions?.find((condition) => condition.type === type)?.status;
  return written === 'True' ? true : written === 'False' ? false : undefined;
}

/** The condition of a protection; undefined: it stays as it is, because there is neither a new report nor the end of the pod. */
export function protection(
  type: Protection,
  { link, session, installation }: World,
  next: SessionStatus,
): ConditionValue | undefined {
  if (!next.podName) {
    const was = session.status?.conditions?.some((condition) => condition.type === type);
    return was ? conditionValue('Unknown', 'NotBound') : undefined;
  }
  const reported = report(link);
  if (!reported) return undefined;
  if (reported[type]) return conditionValue('True', type);
  // Nothing is isolated there, which is no surprise and no fault of an image.
  return conditionValue('False', installation.imagesArePrograms ? 'EmbeddedCluster' : LACKS[type]);
}
