import { storesState } from '../../core/resources/allowed-amounts.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import { parseQuantity } from '../../core/resources/quantity.ts';
import type { CachedSession } from '../observed/world.ts';

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
  return storesState(spec, sessionClass?.spec);
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
