import type { Container, Volume } from '../../core/kube/builtin.ts';
import type { Effective } from '../settings/effective.ts';

/**
 * Volume on the node's disk, as large as its container's whole share of it. The kubelet evicts a pod with a larger
 * volume, and one whose volumes, writable layers and log together exceed the limits of its containers.
 */
export function scratchVolume(name: string, resources: Container['resources']): Volume {
  const sizeLimit = resources?.limits?.['ephemeral-storage'];
  return { name, emptyDir: sizeLimit ? { sizeLimit } : {} };
}

/** Volume of Secret files, readable by the pod's own group: the files belong to root. */
export function secretsVolume(files: Effective['secretFiles']): Volume {
  const sources = files.map(({ name, key, path }) => ({ secret: { name, items: [{ key, path }] } }));
  return { name: 'secrets', projected: { sources, defaultMode: 0o440 } };
}
