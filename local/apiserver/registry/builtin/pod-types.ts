import type { ApiObject, Json } from '../../object.ts';

export interface Container {
  name: string;
  image?: string;
  imagePullPolicy?: string;
  resources?: { limits?: Record<string, string>; requests?: Record<string, string> };
  ports?: { containerPort: number; protocol?: string }[];
  env?: { name: string; value?: string; valueFrom?: { fieldRef?: { apiVersion?: string; fieldPath: string } } }[];
  volumeMounts?: { name: string; mountPath: string }[];
  terminationMessagePath?: string;
  terminationMessagePolicy?: string;
}

export interface PodSpec {
  containers: Container[];
  initContainers?: Container[];
  volumes?: ({ name: string } & Record<string, Json | string>)[];
  restartPolicy?: string;
  terminationGracePeriodSeconds?: number;
  dnsPolicy?: string;
  enableServiceLinks?: boolean;
  nodeName?: string;
  schedulingGates?: { name: string }[];
  preemptionPolicy?: string;
  priorityClassName?: string;
  runtimeClassName?: string;
  priority?: number;
  schedulerName?: string;
  securityContext?: Json;
  serviceAccount?: string;
  serviceAccountName?: string;
  activeDeadlineSeconds?: number;
  tolerations?: Json[];
}

interface ContainerState {
  waiting?: { reason?: string };
  running?: Json;
  terminated?: { exitCode: number; signal?: number; reason?: string };
}

export interface ContainerStatus {
  name: string;
  ready: boolean;
  restartCount: number;
  state?: ContainerState;
  lastState?: ContainerState;
}

export type Pod = ApiObject & {
  spec: PodSpec;
  status?: {
    phase?: string;
    reason?: string;
    qosClass?: string;
    podIP?: string;
    conditions?: { type: string; status: string; lastProbeTime?: string | null; lastTransitionTime?: string | null }[];
    containerStatuses?: ContainerStatus[];
  };
};
