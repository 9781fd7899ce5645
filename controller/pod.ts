import type { Pod } from '../core/kube/builtin.ts';
import type { StoredSession } from '../core/resources/kinds.ts';
import { ownedBy } from '../core/resources/kinds.ts';
import {
  CONTAINER,
  LABEL_CLASS,
  LABEL_INCARNATION,
  LABEL_MANAGED_BY,
  LABEL_SESSION,
  LABEL_SESSION_UID,
  MANAGED_BY,
  podName,
} from '../core/resources/names.ts';
import type { Effective } from './decide/effective.ts';
import type { CachedSession } from './world.ts';

/** Long enough for a runner to stop its agent and say `bye`. */
const GRACE_SECONDS = 10;
/** The user of the images; the same in every incarnation, so that what an agent left belongs to it. */
const UID = 65532;

/**
 * The pod of one incarnation. It starts unbound: nothing in it depends on a turn, and what the session is comes over
 * attach. It satisfies the restricted Pod Security Standard.
 */
export function sessionPod(session: CachedSession, incarnation: number, settings: Effective): Pod {
  const { metadata, spec } = session;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(metadata.uid, incarnation),
      namespace: metadata.namespace as string,
      labels: {
        [LABEL_MANAGED_BY]: MANAGED_BY,
        [LABEL_SESSION]: metadata.name,
        [LABEL_SESSION_UID]: metadata.uid,
        [LABEL_INCARNATION]: String(incarnation),
        // A class's name can be longer than a label's value.
        ...(spec.class.length <= 63 ? { [LABEL_CLASS]: spec.class } : {}),
      },
      ownerReferences: [ownedBy(session as unknown as StoredSession)],
    },
    spec: {
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
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: [
            { name: 'berth', mountPath: '/berth' },
            { name: 'tmp', mountPath: '/tmp' },
          ],
        },
      ],
      volumes: [
        { name: 'berth', emptyDir: {} },
        { name: 'tmp', emptyDir: {} },
      ],
    },
  };
}
