import type { PodSpec } from '../../core/kube/builtin.ts';
import { isProfileAnnotation } from '../../core/resources/pod-template.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';

type Placement = Pick<
  PodSpec,
  'runtimeClassName' | 'hostUsers' | 'nodeSelector' | 'tolerations' | 'affinity' | 'priorityClassName'
>;

/** The part of a session's pod that its class alone decides. */
export interface PodTemplate {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  readOnlyRootFilesystem: boolean;
  /** The directories that an agent writes to are volumes; otherwise they are the image's. */
  scratchVolumes: boolean;
  /** Scheduling and runtime fields of the pod spec. */
  placement: Placement;
}

export function podTemplate(spec: SessionClassSpec): PodTemplate {
  const { podMetadata, sandbox, runtimeClassName, hostUsers, nodeSelector, tolerations, affinity, priorityClassName } =
    spec;
  // Classes of earlier releases can have annotations that are refused now.
  const annotations = Object.entries(podMetadata?.annotations ?? {}).filter(([key]) => !isProfileAnnotation(key));
  return {
    labels: podMetadata?.labels ?? {},
    annotations: Object.fromEntries(annotations),
    readOnlyRootFilesystem: sandbox?.readOnlyRootFilesystem ?? true,
    scratchVolumes: sandbox?.scratch !== 'Image',
    placement: {
      ...(runtimeClassName ? { runtimeClassName } : {}),
      ...(hostUsers === undefined ? {} : { hostUsers }),
      ...(nodeSelector ? { nodeSelector } : {}),
      ...(tolerations ? { tolerations } : {}),
      ...(affinity ? { affinity } : {}),
      ...(priorityClassName ? { priorityClassName } : {}),
    },
  };
}
