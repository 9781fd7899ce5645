import { anySignal } from '../../core/abort.ts';
import { follow } from '../../core/kube/follow.ts';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Cluster } from '../cluster/cluster.ts';

/** Parts of a cluster that following an object needs. */
export type Followed = Pick<Cluster, 'api' | 'namespace' | 'outages'>;

/** Yields an object of the namespace as it is, then after every change; rejects once an outage lasts too long. */
export function followObject<T extends KubeObject>(
  { api, namespace, outages }: Followed,
  resource: Resource<T>,
  name: string,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): AsyncGenerator<Stored<T> | undefined> {
  return follow(api, resource, { namespace, name }, { clock, signal: anySignal(signal, outages.over) });
}
