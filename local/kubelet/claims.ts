/**
 * PersistentVolumeClaims as directories of this machine: created when a pod first needs one, removed with the claim.
 * Size and storage class have no effect.
 */

import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isNotFound } from '../../core/kube/errors.ts';
import { persistentVolumeClaims } from '../../core/kube/resources.ts';
import type { Clock, Logger } from '../../core/runtime.ts';
import type { Store } from '../apiserver/types.ts';
import { removeTree } from '../remove-tree.ts';
import { ContainerConfigError } from './environment.ts';
import { followAll } from './follow-all.ts';
import type { Pod } from './types.ts';

export interface ClaimsOptions {
  /** The folder of all volumes. */
  folder: string;
  store: Store;
  clock: Clock;
  logger: Logger;
}

export class Claims {
  readonly #options: ClaimsOptions;

  constructor(options: ClaimsOptions) {
    this.#options = options;
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  }

  /**
   * Returns paths by the name of the pod's volume. Rejects with a `ContainerConfigError` while a claim does not exist.
   */
  async paths(pod: Pod): Promise<Map<string, string>> {
    const paths = new Map<string, string>();
    for (const { name, persistentVolumeClaim } of pod.spec.volumes ?? []) {
      const claim = (persistentVolumeClaim as { claimName: string } | undefined)?.claimName;
      if (claim !== undefined) paths.set(name, await this.#path(pod.metadata.namespace, claim));
    }
    return paths;
  }

  async #path(namespace: string, name: string): Promise<string> {
    const { store, folder } = this.#options;
    try {
      const { metadata, status } = await store.get(persistentVolumeClaims, { namespace, name });
      const path = join(folder, metadata.uid);
      mkdirSync(path, { recursive: true, mode: 0o700 });
      if (status?.phase !== 'Bound') {
        const patch = { metadata: { uid: metadata.uid }, status: { phase: 'Bound' } };
        await store.patch(persistentVolumeClaims, { namespace, name }, patch, { type: 'merge', subresource: 'status' });
      }
      return path;
    } catch (error) {
      if (isNotFound(error)) throw new ContainerConfigError(`persistentvolumeclaim "${name}" not found`);
      throw error;
    }
  }

  /** Removes directories without a claim, until the signal aborts. */
  sweep(signal: AbortSignal): Promise<void> {
    const { store, folder, clock, logger } = this.#options;
    const list = async () => {
      const { items, metadata } = await store.list(persistentVolumeClaims);
      const present = new Set(items.map((claim) => claim.metadata.uid));
      for (const uid of readdirSync(folder)) if (!present.has(uid)) this.#remove(uid);
      return metadata.resourceVersion;
    };
    return followAll(store, persistentVolumeClaims, {
      list,
      changed: ({ type, object }) => {
        if (type === 'DELETED') this.#remove(object.metadata.uid);
      },
      clock,
      logger,
      signal,
    });
  }

  /** A directory that cannot be removed, as with files of another user in it, stays until the next start. */
  #remove(uid: string): void {
    try {
      removeTree(join(this.#options.folder, uid));
    } catch (error) {
      this.#options.logger.warn({ uid, err: error }, 'directory of a volume not removed');
    }
  }
}
