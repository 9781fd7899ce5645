import type { Pod } from '../../core/kube/builtin.ts';
import type { Stored } from '../../core/kube/types.ts';
import { type SessionClass, sessionclasses } from '../../core/resources/kinds.ts';
import type { Ground } from './ground.ts';

/** CPU that each pod requests: nodes of two CPUs, of which one has the control plane, take all pods of a burst and its refill. */
const SMALL_CPU = '10m';

/** Calls `work` with a class that is as `default` but requests little CPU, and with a pod that it makes. Deletes the class. */
export async function withSmallClass<T>(
  ground: Ground,
  work: (ofClass: string, template: Stored<Pod>) => Promise<T>,
): Promise<T> {
  const { client, namespace } = ground.cluster;
  const { spec } = await client.get(sessionclasses, { name: 'default' });
  const name = `${namespace}-small`;
  const resources = { ...spec.resources, requests: { ...spec.resources?.requests, cpu: SMALL_CPU } };
  await client.create(sessionclasses, { metadata: { name }, spec: { ...spec, resources } } as SessionClass);
  try {
    return await work(name, await ground.podOf(name));
  } finally {
    await client.delete(sessionclasses, { name });
  }
}
