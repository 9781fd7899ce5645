import * as z from 'zod';
import { dnsSubdomain, rules } from './schema.ts';

const labelKey = () => z.string().min(1).max(317);
const labelValue = () =>
  z
    .string()
    .max(63)
    .regex(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/, 'must be a label’s value');

/**
 * Annotations that could take a pod's container out of its AppArmor or seccomp profile; they end in the container's
 * name, or in `pod`. The Pod Security Standards forbid them.
 */
const PROFILES = [
  'container.apparmor.security.beta.kubernetes.io/',
  'container.seccomp.security.alpha.kubernetes.io/',
  'seccomp.security.alpha.kubernetes.io/',
];

export const isProfileAnnotation = (key: string): boolean => PROFILES.some((prefix) => key.startsWith(prefix));

/** Settings of session pods that belong to the platform: labels, annotations, scheduling and runtime. */
export const podTemplate = {
  runtimeClassName: dnsSubdomain()
    .optional()
    .describe('RuntimeClass of the pods, for example for gVisor or Kata. Default: the nodes’ default runtime.'),
  hostUsers: z
    .boolean()
    .optional()
    .describe(
      'False: each pod has a user namespace of its own, so its user is nobody on the node. Needs Kubernetes 1.33, and nodes whose kernel, container runtime and file systems have idmapped mounts; a pod does not start on another node. Default true.',
    ),
  podMetadata: z
    .strictObject({
      labels: z
        .record(z.string(), labelValue())
        .meta({
          maxProperties: 32,
          ...rules({
            rule: "!self.exists(key, key.startsWith('berth.dev/') || key == 'app.kubernetes.io/managed-by')",
            message: 'labels of berth.dev/ and app.kubernetes.io/managed-by are Berth’s own; choose others',
          }),
        })
        .optional()
        .describe('Labels of the pods. Labels of berth.dev/ are refused.'),
      annotations: z
        .record(z.string(), z.string().max(4096))
        .meta({
          maxProperties: 32,
          ...rules({
            rule: `!self.exists(key, ${PROFILES.map((prefix) => `key.startsWith('${prefix}')`).join(' || ')})`,
            message:
              'annotations that set an AppArmor or seccomp profile are against the Pod Security Standards; leave them out: the pods have the container runtime’s default profiles',
          }),
        })
        .optional()
        .describe('Annotations of the pods. Annotations that set an AppArmor or seccomp profile are refused.'),
    })
    .optional()
    .describe('Labels and annotations added to session pods, for example for metering, meshes and policies.'),
  nodeSelector: z
    .record(z.string(), labelValue())
    .meta({ maxProperties: 32 })
    .optional()
    .describe('Labels of the nodes that session pods may run on.'),
  tolerations: z
    .array(
      z.strictObject({
        key: labelKey().optional().describe('Key of the taint. Default with Exists: any key.'),
        operator: z
          .enum(['Exists', 'Equal'])
          .optional()
          .describe('Equal compares the value; Exists ignores it. Default Equal.'),
        value: z.string().max(63).optional().describe('Value of the taint, with Equal.'),
        effect: z
          .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
          .optional()
          .describe('Effect of the taint. Default: any effect.'),
        tolerationSeconds: z
          .int()
          .min(0)
          .optional()
          .describe('Seconds that a pod stays on a tainted node, with NoExecute. Default: for ever.'),
      }),
    )
    .max(32)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe('Taints of nodes that session pods tolerate.'),
  affinity: z
    .unknown()
    .meta({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true })
    .optional()
    .describe('Affinity as in a pod. The API server validates it when Berth creates a pod.'),
  priorityClassName: dnsSubdomain().optional().describe('PriorityClass of the pods.'),
};
