import type { Pod } from '../../core/kube/builtin.ts';
import type { Stored } from '../../core/kube/types.ts';
import { type SessionClass, sessionclasses } from '../../core/resources/kinds.ts';
import type { Ground } from './ground.ts';

/** Requests of a pod: nodes of two CPUs, of which one has the control plane, take all pods of a burst and its refill. */
const FOR_A_BURST = { cpu: '10m' };

/**
 * Calls `work` with a class that is as `default` but has the requests, no limits of its own, and what `more` says, and with a pod
 * that it makes. Deletes the class.
 */
export async function withSmallClass<T>(
  ground: Ground,
  work: (ofClass: string, template: Stored<Pod>) => Promise<T>,
  { requests = FOR_A_BURST, ...more }: { requests?: Record<string, string> } & Partial<SessionClass['spec']> = {},
): Promise<T> {
  const { client, namespace } = ground.cluster;
  const ofDefault = await client.get(sessionclasses, { name: 'default' });
  const { limits: _, ...spec } = ofDefault.spec;
  const name = `${namespace}-small`;
  const resources = { ...spec.resources, requests: { ...spec.resources?.requests, ...requests } };
  await client.create(sessionclasses, { metadata: { name }, spec: { ...spec, resources, ...more } } as SessionClass);
  try {
    return await work(name, await ground.podOf(name));
  } finally {
    await client.delete(sessionclasses, { name });
  }
}
