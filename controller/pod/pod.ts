import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { Pod } from '../../core/kube/builtin.ts';
import type { OwnerReference } from '../../core/kube/types.ts';
import { ownedBy, type StoredSessionPool } from '../../core/resources/kinds.ts';
import {
  CONTAINER,
  LABEL_CLASS,
  LABEL_INCARNATION,
  LABEL_MANAGED_BY,
  LABEL_NETWORK,
  LABEL_POOL,
  LABEL_POOL_UID,
  LABEL_SESSION,
  LABEL_SESSION_UID,
  LABEL_TEMPLATE,
  MANAGED_BY,
  networkKey,
  podName,
  poolPodName,
  SECRETS_DIRECTORY,
  workspaceName,
} from '../../core/resources/names.ts';
import type { CachedSession } from '../observed/world.ts';
import type { Effective } from '../settings/effective.ts';
import { withBuilder, withRunner } from './injection.ts';
import { scratchVolume, secretsVolume } from './volumes.ts';

/** Grace period of the pod: long enough for a runner to stop its agent and say `bye`. */
const GRACE_SECONDS = 10;
/** User of the images; the same in every incarnation, so that files left by an agent belong to it. */
const UID = 65532;
/** Volumes of the agent's writable directories. Without them the directories are in the container's writable layer. */
const SCRATCH = [
  { name: 'berth', mountPath: '/berth' },
  { name: 'tmp', mountPath: '/tmp' },
];

/**
 * Builds the pod of one incarnation. It starts unbound: nothing in it depends on a turn, and the session comes over
 * attach. It satisfies the restricted Pod Security Standard.
 */
export function sessionPod(session: CachedSession, incarnation: number, settings: Effective): Pod {
  const { metadata, spec } = session;
  return podOf(settings, {
    name: podName(metadata.uid, incarnation),
    namespace: metadata.namespace,
    class: spec.class,
    labels: sessionLabels(session, incarnation),
    owner: ownedBy(session),
    claimName: workspaceName(metadata.uid),
  });
}

/** Labels by which the pod of an incarnation is found. */
export function sessionLabels({ metadata }: CachedSession, incarnation: number): Record<string, string> {
  return {
    [LABEL_MANAGED_BY]: MANAGED_BY,
    [LABEL_SESSION]: metadata.name,
    [LABEL_SESSION_UID]: metadata.uid,
    [LABEL_INCARNATION]: String(incarnation),
  };
}

/** Builds a pod of a pool, which no session has claimed. Its container differs in nothing from that of a session's pod. */
export function poolPod(pool: StoredSessionPool, number: number, settings: Effective): Pod {
  const { name, namespace, uid } = pool.metadata;
  return podOf(settings, {
    name: poolPodName(uid, number),
    namespace,
    class: pool.spec.class,
    labels: {
      [LABEL_MANAGED_BY]: MANAGED_BY,
      [LABEL_SESSION_UID]: '',
      [LABEL_POOL]: name,
      [LABEL_POOL_UID]: uid,
      [LABEL_TEMPLATE]: templateHash(pool.spec.class, settings),
    },
    owner: ownedBy(pool, 'SessionPool'),
    claimName: '',
  });
}

/**
 * Digest of all that a pod of this class with these settings is made from, 16 hexadecimal digits. A session can claim the pods of a pool
 * whose digest equals that of the pod it would get itself; a volume, image, resources or Secrets of its own make it differ.
 */
export function templateHash(ofClass: string, settings: Effective): string {
  const pod = podOf(settings, { name: '', namespace: '', class: ofClass, labels: {}, owner: undefined, claimName: '' });
  return createHash('sha256')
    .update(canonicalJson(JSON.parse(JSON.stringify(pod))))
    .digest('hex')
    .slice(0, 16);
}

interface PodIdentity {
  name: string;
  namespace: string;
  class: string;
  labels: Record<string, string>;
  owner: OwnerReference | undefined;
  /** Claim of the volume, for settings with a workspace. */
  claimName: string;
}

function podOf(settings: Effective, { name, namespace, class: ofClass, labels, owner, claimName }: PodIdentity): Pod {
  const { workspace } = settings.kept;
  const { annotations, readOnlyRootFilesystem, scratchVolumes, placement } = settings.template;
  const scratch = scratchVolumes ? SCRATCH : [];
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      labels: {
        ...settings.template.labels,
        ...labels,
        // Label by which its NetworkPolicy selects the pod.
        [LABEL_NETWORK]: networkKey(ofClass),
        // A class's name can be longer than a label's value.
        ...(ofClass.length <= 63 ? { [LABEL_CLASS]: ofClass } : {}),
      },
      ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
      ...(owner ? { ownerReferences: [owner] } : {}),
    },
    spec: {
      ...placement,
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: GRACE_SECONDS,
      imagePullSecrets: settings.imagePullSecrets,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: UID,
        runAsGroup: UID,
        fsGroup: UID,
        // OnRootMismatch avoids a walk over a large volume at every start.
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: CONTAINER,
          image: settings.image,
          ...(settings.imagePullPolicy ? { imagePullPolicy: settings.imagePullPolicy } : {}),
          stdin: true,
          stdinOnce: false,
          tty: false,
          env: [
            { name: 'BERTH_POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
            ...settings.secrets.map(({ variable, name, key }) => ({
              name: variable,
              valueFrom: { secretKeyRef: { name, key } },
            })),
          ],
          resources: settings.resources,
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: [
            ...scratch,
            ...(workspace ? [{ name: 'workspace', mountPath: workspace.mountPath }] : []),
            ...(settings.secretFiles.length > 0
              ? [{ name: 'secrets', mountPath: SECRETS_DIRECTORY, readOnly: true }]
              : []),
          ],
        },
      ],
      volumes: [
        ...scratch.map(({ name }) => scratchVolume(name, settings.resources)),
        ...(workspace ? [{ name: 'workspace', persistentVolumeClaim: { claimName } }] : []),
        ...(settings.secretFiles.length > 0 ? [secretsVolume(settings.secretFiles)] : []),
      ],
    },
  };
  const built =
    settings.builds && settings.builderImage ? withBuilder(pod, settings.builderImage, settings.buildCache) : pod;
  return settings.runner === 'Injected' ? withRunner(built, settings.runnerImage) : built;
}
