/** Pods and objects that they name, as far as the kubelet reads them; and the parts of the kubelet. */

import type { NamespacedObject, Resource, Stored } from '../../core/kube/types.ts';

export interface KeySelector {
  name: string;
  key: string;
  optional?: boolean;
}

export interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: {
    secretKeyRef?: KeySelector;
    configMapKeyRef?: KeySelector;
    fieldRef?: { fieldPath: string };
    resourceFieldRef?: object;
  };
}

export interface Container {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  env?: EnvVar[];
  envFrom?: { prefix?: string; secretRef?: NamedSource; configMapRef?: NamedSource }[];
  volumeMounts?: { name: string; mountPath: string; subPath?: string }[];
  resources?: { limits?: { memory?: string } };
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
}

interface NamedSource {
  name: string;
  optional?: boolean;
}

interface Volume {
  name: string;
  emptyDir?: object;
  [kind: string]: unknown;
}

export interface PodSpec {
  nodeName?: string;
  /** Gates that keep any node from taking the pod. */
  schedulingGates?: { name: string }[];
  restartPolicy?: 'Always' | 'OnFailure' | 'Never';
  terminationGracePeriodSeconds?: number;
  containers: Container[];
  initContainers?: Container[];
  volumes?: Volume[];
  serviceAccountName?: string;
}

interface TerminatedState {
  exitCode: number;
  reason: string;
  message?: string;
  /** Undefined if the container was never created. */
  startedAt?: string;
  finishedAt?: string;
  containerID?: string;
}

export interface ContainerState {
  waiting?: { reason: string; message?: string };
  running?: { startedAt: string };
  terminated?: TerminatedState;
}

export interface ContainerStatus {
  name: string;
  image: string;
  imageID: string;
  containerID?: string;
  ready: boolean;
  started: boolean;
  restartCount: number;
  state: ContainerState;
  lastState: ContainerState;
}

export interface PodCondition {
  type: string;
  status: 'True' | 'False';
  lastTransitionTime: string;
  reason?: string;
  message?: string;
}

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

export interface PodStatus {
  phase?: PodPhase;
  reason?: string;
  message?: string;
  startTime?: string;
  podIP?: string;
  podIPs?: { ip: string }[];
  hostIP?: string;
  hostIPs?: { ip: string }[];
  qosClass?: string;
  conditions?: PodCondition[];
  containerStatuses?: ContainerStatus[];
}

export interface PodObject extends NamespacedObject {
  spec: PodSpec;
  status?: PodStatus;
}

export type Pod = Stored<PodObject>;

/** Resource of pods, typed by the fields that the kubelet reads and writes. */
export const pods: Resource<PodObject> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };

/** Program of an image on this machine. */
export interface Image {
  /** Program and first arguments for a container without a command of its own. */
  entrypoint: string[];
  env?: Record<string, string>;
  workingDir?: string;
  /** Files of this machine that stand for programs of the image, by their path there; for commands beside the entry point. */
  programs?: Record<string, string>;
}

/** Images by name without tag and digest. */
export type Images = Record<string, Image>;
