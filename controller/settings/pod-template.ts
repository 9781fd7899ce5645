import type { PodSpec } from '../../core/kube/builtin.ts';
import { isProfileAnnotation } from '../../core/resources/pod-template.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';

type Placement = Pick<PodSpec, 'runtimeClassName' | 'nodeSelector' | 'tolerations' | 'affinity' | 'priorityClassName'>;

/** What of a session's pod is the class's alone. */
export interface PodTemplate {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  readOnlyRootFilesystem: boolean;
  /** Where and in what it runs, in the words of a pod's spec. */
  placement: Placement;
}

export function podTemplate(spec: SessionClassSpec): PodTemplate {
  const { podMetadata, sandbox, runtimeClassName, nodeSelector, tolerations, affinity, priorityClassName } = spec;
  // A class of an earlier release can have annotations that are refused by now.
  const annotations = Object.entries(podMetadata?.annotations ?? {}).filter(([key]) => !isProfileAnnotation(key));
  return {
    labels: podMetadata?.labels ?? {},
    annotations: Object.fromEntries(annotations),
    readOnlyRootFilesystem: sandbox?.readOnlyRootFilesystem ?? true,
    placement: {
      ...(runtimeClassName ? { runtimeClassName } : {}),
      ...(nodeSelector ? { nodeSelector } : {}),
      ...(tolerations ? { tolerations } : {}),
      ...(affinity ? { affinity } : {}),
      ...(priorityClassName ? { priorityClassName } : {}),
    },
  };
}
