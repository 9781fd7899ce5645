import type { PersistentVolumeClaim } from '../../core/kube/builtin.ts';
import { ApiError, ifThere, isAlreadyExists } from '../../core/kube/errors.ts';
import { persistentVolumeClaims } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import { ownedBy } from '../../core/resources/kinds.ts';
import {
  LABEL_INCARNATION,
  LABEL_MANAGED_BY,
  LABEL_SESSION,
  LABEL_SESSION_UID,
  MANAGED_BY,
  workspaceName,
} from '../../core/resources/names.ts';
import { learn } from '../observed/memory.ts';
import { refusal } from '../pod/refusal.ts';
import type { Workspace } from '../settings/persistence.ts';
import type { ReconcileContext } from './context.ts';

/**
 * The session's volume is there before a pod that mounts it. Rejects when it cannot be created, with the reason in the
 * session's memory where a person must know it.
 */
export async function ensureWorkspace(context: ReconcileContext, workspace: Workspace): Promise<void> {
  const { effects, world, memory, signal, key } = context;
  const claim = claimOf(context, workspace);
  try {
    await effects.api.create(persistentVolumeClaims, claim, { signal });
    effects.log.info({ session: key, claim: claim.metadata.name }, 'workspace created');
    return;
  } catch (error) {
    if (!isAlreadyExists(error)) {
      if (error instanceof ApiError) {
        const problem = refusal(error, `PersistentVolumeClaim ${claim.metadata.name}`);
        learn(memory, { fact: 'StartProblem', problem });
      }
      throw error;
    }
  }
  const present = await readClaim(context);
  const ours = present?.metadata.ownerReferences?.some(({ uid }) => uid === world.session.metadata.uid);
  if (present && ours && !present.metadata.deletionTimestamp) return;
  const message =
    present && !ours
      ? `PersistentVolumeClaim ${claim.metadata.name} exists and is not this session's; delete it.`
      : `PersistentVolumeClaim ${claim.metadata.name} is being deleted; a new one is made when it is gone.`;
  learn(memory, { fact: 'StartProblem', problem: { reason: 'Unschedulable', message } });
  throw new ApiError({ code: 409, reason: 'AlreadyExists', message });
}

/** Reports whether the volume existed before this incarnation: then it is as the former one left it. */
export async function keepsWorkspace(context: ReconcileContext): Promise<boolean> {
  const claim = await readClaim(context);
  return claim !== undefined && claim.metadata.labels?.[LABEL_INCARNATION] !== incarnationOf(context);
}

function readClaim({ effects, world, signal }: ReconcileContext): Promise<Stored<PersistentVolumeClaim> | undefined> {
  const { uid, namespace } = world.session.metadata;
  return ifThere(effects.api.get(persistentVolumeClaims, { namespace, name: workspaceName(uid) }, { signal }));
}

function claimOf(context: ReconcileContext, { size, storageClassName }: Workspace): PersistentVolumeClaim {
  const { metadata } = context.world.session;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: workspaceName(metadata.uid),
      namespace: metadata.namespace,
      labels: {
        [LABEL_MANAGED_BY]: MANAGED_BY,
        [LABEL_SESSION]: metadata.name,
        [LABEL_SESSION_UID]: metadata.uid,
        [LABEL_INCARNATION]: incarnationOf(context),
      },
      ownerReferences: [ownedBy(context.world.session)],
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: size } },
      ...(storageClassName ? { storageClassName } : {}),
    },
  };
}

const incarnationOf = ({ world }: ReconcileContext) => String(world.session.status?.incarnation ?? 0);
