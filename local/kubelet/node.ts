import { arch, cpus, type as osType, release, totalmem } from 'node:os';
import type { KubeObject } from '../../core/kube/types.ts';
import { timestamp } from './status.ts';

/** The Node object: ready, with this machine's size. `now` in milliseconds since the epoch. */
export function nodeObject(name: string, now: number): KubeObject & { status: object } {
  const capacity = { cpu: String(cpus().length), memory: `${Math.floor(totalmem() / 1024)}Ki`, pods: '1000' };
  const time = timestamp(now);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
    status: {
      capacity,
      allocatable: capacity,
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'KubeletReady',
          message: 'pods are processes of this machine, not isolated from it',
          lastHeartbeatTime: time,
          lastTransitionTime: time,
        },
      ],
      addresses: [
        { type: 'InternalIP', address: '127.0.0.1' },
        { type: 'Hostname', address: name },
      ],
      nodeInfo: {
        architecture: arch(),
        operatingSystem: osType().toLowerCase(),
        kernelVersion: release(),
        osImage: 'this machine',
        containerRuntimeVersion: 'process://1',
        kubeletVersion: '',
        kubeProxyVersion: '',
        bootID: '',
        machineID: '',
        systemUUID: '',
      },
    },
  };
}
