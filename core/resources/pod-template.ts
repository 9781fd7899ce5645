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
    .describe('A RuntimeClass of the cluster, for example one of gVisor or Kata. Default: the nodes’ own runtime.'),
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
        .describe('Labels of the pods; none of berth.dev/.'),
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
        .describe('Annotations of the pods; none that sets an AppArmor or seccomp profile.'),
    })
    .optional()
    .describe('Added to the session pods’ own, for meters, meshes and policies.'),
  nodeSelector: z
    .record(z.string(), labelValue())
    .meta({ maxProperties: 32 })
    .optional()
    .describe('Labels of the nodes that session pods may run on.'),
  tolerations: z
    .array(
      z.strictObject({
        key: labelKey().optional().describe('Of the taint. Default, with Exists: any.'),
        operator: z.enum(['Exists', 'Equal']).optional().describe('Whether the value counts. Default Equal.'),
        value: z.string().max(63).optional().describe('Of the taint, with Equal.'),
        effect: z
          .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
          .optional()
          .describe('Of the taint. Default: any.'),
        tolerationSeconds: z
          .int()
          .min(0)
          .optional()
          .describe('With NoExecute: how long, in seconds, a pod stays on a node that is tainted. Default: for ever.'),
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
    .describe('As in a pod; checked when a pod is made.'),
  priorityClassName: dnsSubdomain().optional().describe('A PriorityClass of the cluster.'),
};
