import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { CachedSession, Problem } from '../world/world.ts';
import { parseQuantity } from './quantity.ts';
import { timeoutMs } from './timeouts.ts';

type Spec = CachedSession['spec'];

/** The volume of a session. */
export interface Workspace {
  size: string;
  storageClassName?: string;
  mountPath: string;
}

/** Parts of a session that outlive its pod. */
export interface Kept {
  state: boolean;
  /** Maximum bytes of the uncompressed archive; absent: the most that Berth can store. */
  maxStateBytes?: number;
  /** Maximum bytes of the compressed archive; absent: the usual limit. */
  maxPackedBytes?: number;
  workspace?: Workspace;
}

const DEFAULT_MOUNT_PATH = '/workspace';

/**
 * Reports whether the session's state is stored. A session without stored state loses it with its pod, so its pod is
 * never taken for others.
 */
export function keepsState(spec: Spec, sessionClass: StoredSessionClass | undefined): boolean {
  if (sessionClass?.spec.runner === 'None') return false;
  return spec.persistence?.state ?? sessionClass?.spec.persistence?.state ?? true;
}

/** Merges the session's settings over its class's, at most the class's ceilings. */
export function keptOf(spec: Spec, sessionClass: StoredSessionClass): Kept {
  const { persistence, maxPersistence } = sessionClass.spec;
  const amounts = [spec.persistence?.maxState ?? persistence?.maxState, maxPersistence?.maxState]
    .filter((amount) => amount !== undefined)
    .map(parseQuantity);
  const workspace = spec.persistence?.workspace ?? persistence?.workspace;
  return {
    state: keepsState(spec, sessionClass),
    ...(amounts.length > 0 ? { maxStateBytes: Math.floor(Math.min(...amounts)) } : {}),
    ...(workspace?.type === 'Volume' && workspace.size
      ? {
          workspace: {
            size: workspace.size,
            mountPath: workspace.mountPath ?? DEFAULT_MOUNT_PATH,
            ...(workspace.storageClassName ? { storageClassName: workspace.storageClassName } : {}),
          },
        }
      : {}),
  };
}

/** The problem with the session's persistence settings. */
export function persistenceProblem(
  spec: Spec,
  sessionClass: StoredSessionClass & { spec: SessionClassSpec },
): Problem | undefined {
  const { maxPersistence } = sessionClass.spec;
  const { maxState } = spec.persistence ?? {};
  const ceiling = maxPersistence?.maxState;
  if (maxState && ceiling && parseQuantity(maxState) > parseQuantity(ceiling)) {
    return tooMuch('spec.persistence.maxState', maxState, ceiling);
  }
  const { workspace } = keptOf(spec, sessionClass);
  const largest = maxPersistence?.workspaceSize;
  if (workspace && largest && parseQuantity(workspace.size) > parseQuantity(largest)) {
    return tooMuch('spec.persistence.workspace.size', workspace.size, largest);
  }
  if (sessionClass.spec.runner === 'None') {
    const wants = spec.persistence?.state || maxState;
    if (!wants) return undefined;
    const field = maxState ? 'maxState' : 'state';
    return {
      reason: 'InvalidSpec',
      message: `spec.persistence.${field}: is set, but with the class’s runner None nothing is stored between turns; leave it out`,
    };
  }
  if (!keepsState(spec, sessionClass) && timeoutMs('lifetime', spec, sessionClass) === Number.POSITIVE_INFINITY) {
    return {
      reason: 'InvalidSpec',
      message:
        'spec.timeouts.lifetime: is not set, and without persistence.state nothing else ends an idle session; set it, for example to 8h',
    };
  }
  return undefined;
}

function tooMuch(field: string, wanted: string, ceiling: string): Problem {
  return {
    reason: 'NotAllowed',
    message: `${field}: ${wanted} is more than the ${ceiling} that the class allows; ask for less`,
  };
}
