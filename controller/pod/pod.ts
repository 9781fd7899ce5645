import type { Pod } from '../../core/kube/builtin.ts';
import { ownedBy } from '../../core/resources/kinds.ts';
import {
  CONTAINER,
  LABEL_CLASS,
  LABEL_INCARNATION,
  LABEL_MANAGED_BY,
  LABEL_NETWORK,
  LABEL_SESSION,
  LABEL_SESSION_UID,
  MANAGED_BY,
  networkKey,
  podName,
  SECRETS_DIRECTORY,
  workspaceName,
} from '../../core/resources/names.ts';
import type { Effective } from '../settings/effective.ts';
import type { CachedSession } from '../world/world.ts';
import { withBuilder, withRunner } from './injection.ts';
import { scratchVolume, secretsVolume } from './volumes.ts';

/** Grace period of the pod: long enough for a runner to stop its agent and say `bye`. */
const GRACE_SECONDS = 10;
/** User of the images; the same in every incarnation, so that files left by an agent belong to it. */
const UID = 65532;

/**
 * Builds the pod of one incarnation. It starts unbound: nothing in it depends on a turn, and the session comes over
 * attach. It satisfies the restricted Pod Security Standard.
 */
export function sessionPod(session: CachedSession, incarnation: number, settings: Effective): Pod {
  const { metadata, spec } = session;
  const { workspace } = settings.kept;
  const { labels, annotations, readOnlyRootFilesystem, placement } = settings.template;
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(metadata.uid, incarnation),
      namespace: metadata.namespace,
      labels: {
        ...labels,
        [LABEL_MANAGED_BY]: MANAGED_BY,
        [LABEL_SESSION]: metadata.name,
        [LABEL_SESSION_UID]: metadata.uid,
        [LABEL_INCARNATION]: String(incarnation),
        // Label by which its NetworkPolicy selects the pod.
        [LABEL_NETWORK]: networkKey(spec.class),
        // A class's name can be longer than a label's value.
        ...(spec.class.length <= 63 ? { [LABEL_CLASS]: spec.class } : {}),
      },
      ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
      ownerReferences: [ownedBy(session)],
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
            { name: 'berth', mountPath: '/berth' },
            { name: 'tmp', mountPath: '/tmp' },
            ...(workspace ? [{ name: 'workspace', mountPath: workspace.mountPath }] : []),
            ...(settings.secretFiles.length > 0
              ? [{ name: 'secrets', mountPath: SECRETS_DIRECTORY, readOnly: true }]
              : []),
          ],
        },
      ],
      volumes: [
        scratchVolume('berth', settings.resources),
        scratchVolume('tmp', settings.resources),
        ...(workspace
          ? [{ name: 'workspace', persistentVolumeClaim: { claimName: workspaceName(metadata.uid) } }]
          : []),
        ...(settings.secretFiles.length > 0 ? [secretsVolume(settings.secretFiles)] : []),
      ],
    },
  };
  const built =
    settings.builds && settings.builderImage ? withBuilder(pod, settings.builderImage, settings.buildCache) : pod;
  return settings.runner === 'Injected' ? withRunner(built, settings.runnerImage) : built;
}
