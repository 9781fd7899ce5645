/** Kubernetes' own kinds that Berth uses, with the fields it uses. */
import type { KubeObject, NamespacedObject, Stored } from './types.ts';

export interface Pod extends NamespacedObject {
  spec: PodSpec;
  status?: PodStatus;
}

export type StoredPod = Stored<Pod>;

export interface PodSpec {
  containers: Container[];
  initContainers?: Container[];
  volumes?: Volume[];
  restartPolicy?: 'Always' | 'OnFailure' | 'Never';
  serviceAccountName?: string;
  automountServiceAccountToken?: boolean;
  enableServiceLinks?: boolean;
  terminationGracePeriodSeconds?: number;
  nodeName?: string;
  /** Gates that keep the scheduler from placing the pod; after creation they can only be removed. */
  schedulingGates?: { name: string }[];
  nodeSelector?: Record<string, string>;
  runtimeClassName?: string;
  hostUsers?: boolean;
  priorityClassName?: string;
  imagePullSecrets?: { name: string }[];
  tolerations?: object[];
  affinity?: unknown;
  securityContext?: object;
}

export interface Container {
  name: string;
  image?: string;
  imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  /** Marks an init container as a sidecar, which keeps running beside the other containers. */
  restartPolicy?: 'Always';
  command?: string[];
  args?: string[];
  workingDir?: string;
  env?: EnvVar[];
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  volumeMounts?: { name: string; mountPath: string; subPath?: string; readOnly?: boolean }[];
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
  securityContext?: object;
}

export interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: {
    secretKeyRef?: { name: string; key: string; optional?: boolean };
    fieldRef?: { fieldPath: string };
  };
}

export interface Volume {
  name: string;
  emptyDir?: { medium?: '' | 'Memory'; sizeLimit?: string };
  secret?: { secretName: string; items?: { key: string; path: string; mode?: number }[]; defaultMode?: number };
  /** Files from several sources in one folder; Berth uses Secrets only. */
  projected?: {
    sources: { secret: { name: string; items: { key: string; path: string }[] } }[];
    defaultMode?: number;
  };
  persistentVolumeClaim?: { claimName: string };
  image?: { reference: string; pullPolicy?: 'Always' | 'IfNotPresent' | 'Never' };
}

interface PodStatus {
  phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
  reason?: string;
  message?: string;
  conditions?: Condition[];
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: ContainerStatus[];
}

export interface ContainerStatus {
  name: string;
  ready: boolean;
  restartCount: number;
  containerID?: string;
  state?: ContainerState;
  lastState?: ContainerState;
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: {
    exitCode: number;
    reason?: string;
    message?: string;
    startedAt?: string;
    finishedAt?: string;
  };
}

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface PersistentVolumeClaim extends NamespacedObject {
  spec: {
    accessModes: ('ReadWriteOnce' | 'ReadWriteOncePod' | 'ReadWriteMany' | 'ReadOnlyMany')[];
    resources: { requests: { storage: string } };
    storageClassName?: string;
  };
  status?: { phase?: 'Pending' | 'Bound' | 'Lost' };
}

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

export interface NetworkPolicyPeer {
  ipBlock?: { cidr: string; except?: string[] };
  namespaceSelector?: LabelSelector;
  podSelector?: LabelSelector;
}

export interface NetworkPolicyRule {
  to?: NetworkPolicyPeer[];
  ports?: { port: number; endPort?: number; protocol: 'TCP' | 'UDP' | 'SCTP' }[];
}

export interface NetworkPolicy extends NamespacedObject {
  spec: {
    podSelector: LabelSelector;
    policyTypes: ('Ingress' | 'Egress')[];
    egress?: NetworkPolicyRule[];
  };
}

export interface Secret extends NamespacedObject {
  type?: string;
  /** Values in base64. */
  data?: Record<string, string>;
}

export interface ConfigMap extends NamespacedObject {
  immutable?: boolean;
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

export type Namespace = KubeObject;

export interface Node extends KubeObject {
  spec?: { unschedulable?: boolean };
  /** `allocatable`: quantities of what pods can have, by resource. */
  status?: { conditions?: Condition[]; allocatable?: Record<string, string> };
}

export type ServiceAccount = KubeObject;

export interface Lease extends NamespacedObject {
  spec?: LeaseSpec;
}

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  leaseTransitions?: number;
  /** RFC 3339 with microseconds. */
  acquireTime?: string;
  renewTime?: string;
}

export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  resourceVersion?: string;
}

export interface Event extends NamespacedObject {
  involvedObject: ObjectReference;
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
  source?: { component?: string };
  reportingComponent?: string;
  reportingInstance?: string;
}

interface UserInfo {
  username?: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

export interface TokenReview extends KubeObject {
  spec: { token: string; audiences?: string[] };
  status?: { authenticated?: boolean; user?: UserInfo; audiences?: string[]; error?: string };
}

export interface SubjectAccessReview extends KubeObject {
  spec: {
    user?: string;
    uid?: string;
    groups?: string[];
    extra?: Record<string, string[]>;
    resourceAttributes?: {
      namespace?: string;
      verb: string;
      group?: string;
      version?: string;
      resource: string;
      subresource?: string;
      name?: string;
    };
  };
  status?: { allowed: boolean; denied?: boolean; reason?: string; evaluationError?: string };
}

export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string;
    scope: 'Namespaced' | 'Cluster';
    names: { plural: string; singular?: string; kind: string; shortNames?: string[]; categories?: string[] };
    versions: { name: string; served: boolean; storage: boolean; schema?: object }[];
  };
  status?: { conditions?: Condition[]; storedVersions?: string[] };
}
