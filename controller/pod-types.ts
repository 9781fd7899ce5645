import type { KubeObject, Resource, Stored } from '../core/kube/types.ts';

/** The parts of a Pod that the controller writes or reads. */

export interface EnvEntry {
  name: string;
  value?: string;
  valueFrom?: { secretKeyRef?: { name: string; key: string }; fieldRef?: { fieldPath: string } };
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: { exitCode: number; signal?: number; reason?: string; message?: string };
}

export interface Pod extends KubeObject {
  spec: {
    nodeName?: string;
    containers: { name: string; image: string; [field: string]: unknown }[];
    [field: string]: unknown;
  };
  status?: {
    phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
    reason?: string;
    message?: string;
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
    containerStatuses?: { name: string; state?: ContainerState; started?: boolean }[];
  };
}
export type StoredPod = Stored<Pod>;

export const pods: Resource<Pod> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
