/**
 * Files of projected volumes, from Secrets: written once, when the pod is prepared, and readable by their owner only.
 */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { isNotFound } from '../../core/kube/errors.ts';
import { secrets } from '../../core/kube/resources.ts';
import type { Store } from '../apiserver/types.ts';
import { ContainerConfigError } from './environment.ts';
import type { Pod } from './types.ts';
import { underRoot } from './volumes.ts';

interface Projected {
  sources?: { secret?: { name: string; items?: { key: string; path: string }[] } }[];
}

/** Rejects with a `ContainerConfigError` while a Secret or a key of it does not exist. */
export async function writeProjected(store: Store, pod: Pod, root: string): Promise<void> {
  for (const volume of pod.spec.volumes ?? []) {
    const mount = pod.spec.containers.flatMap(({ volumeMounts = [] }) => volumeMounts).find(named(volume.name));
    if (!volume.projected || !mount) continue;
    for (const source of (volume.projected as Projected).sources ?? []) {
      if (!source.secret?.items) {
        throw new ContainerConfigError(`volume "${volume.name}": the embedded cluster projects items of Secrets only`);
      }
      const { name, items } = source.secret;
      const data = await read(store, pod.metadata.namespace, name);
      for (const { key, path } of items) {
        const value = data[key];
        if (value === undefined) throw new ContainerConfigError(`references non-existent secret key: ${name}/${key}`);
        const file = join(underRoot(root, mount.mountPath), normalize(join('/', path)));
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        // An earlier attempt, in which another Secret was missing, may have left the file: nobody can write to that.
        rmSync(file, { force: true });
        writeFileSync(file, Buffer.from(value, 'base64'), { mode: 0o400 });
      }
    }
  }
}

const named = (name: string) => (mount: { name: string }) => mount.name === name;

async function read(store: Store, namespace: string, name: string): Promise<Record<string, string>> {
  try {
    return (await store.get(secrets, { namespace, name })).data ?? {};
  } catch (error) {
    if (isNotFound(error)) throw new ContainerConfigError(`secret "${name}" not found`);
    throw error;
  }
}
