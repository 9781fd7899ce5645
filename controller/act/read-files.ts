import { isForbidden, isNotFound } from '../../core/kube/errors.ts';
import { configMaps } from '../../core/kube/resources.ts';
import { learn } from '../observed/memory.ts';
import type { ReconcileContext } from './context.ts';

/** Brings the cache up to the ConfigMaps of these names. One that may not be read stays missing. */
export async function readFiles({ effects, world, memory, signal }: ReconcileContext, names: string[]): Promise<void> {
  const { api, clock } = effects;
  const { namespace } = world.session.metadata;
  const at = clock.now();
  for (const name of names) {
    await api.get(configMaps, { namespace, name }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error) && !isForbidden(error)) throw error;
    });
  }
  learn(memory, { fact: 'FilesRead', at });
}
