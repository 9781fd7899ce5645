import type { KubeClient } from '../../core/kube/client.ts';
import type { AnswerTime } from '../../core/kube/server-clock.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import type { Backend } from './backend.ts';
import type { Outages } from './outages.ts';

/** Sessions and turns of a namespace as commands use them, through the Kubernetes API or through Berth's HTTP API. */
export interface Cluster extends Backend {
  /** Reads objects. Those that the HTTP API does not serve are Forbidden. */
  api: Pick<KubeApi, 'get' | 'list' | 'watch'>;
  namespace: string;
  /** Outages of what answers these calls. */
  outages: Outages;
  /** Resolves with true if the cluster's pods are processes of this machine; asked for once. */
  embedded(): Promise<boolean>;
}

/** A cluster whose Kubernetes API the caller can use. */
export interface KubeCluster extends Cluster {
  api: KubeClient;
  /** Resolves with the caller's name as `requester` of a spec, asked for once; empty where the cluster does not say it. */
  author(): Promise<{ requester?: string }>;
  /** Time of the last answer, by the API server's clock and by ours. */
  answered(): AnswerTime | undefined;
}
