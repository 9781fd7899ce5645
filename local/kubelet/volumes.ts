/**
 * Directories of a pod. Processes have no mounts, so an emptyDir mounted at /x is the directory <root>/x. <root> is the
 * pod's own folder, passed to its processes in BERTH_LOCAL_ROOT. A program that runs both in a container and here puts
 * that variable's value, if set, before the absolute paths it writes to.
 */

import { lstatSync, mkdirSync, readlinkSync, symlinkSync, unlinkSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { ContainerConfigError } from './environment.ts';
import type { PodSpec } from './types.ts';

/** Returns the path of `mountPath` under the root; a path that leaves the root is brought back into it. */
export function underRoot(root: string, mountPath: string): string {
  return join(root, normalize(join('/', mountPath)));
}

/**
 * Creates the root, home and tmp in it, and the mounts of all containers. Mounts of one volume share a directory;
 * `claims` has the directories of PersistentVolumeClaims, by the volume's name. Can be repeated.
 */
export function makeVolumes(root: string, spec: PodSpec, claims: ReadonlyMap<string, string> = new Map()): void {
  for (const folder of [root, join(root, 'home'), join(root, 'tmp')])
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const volume of spec.volumes ?? []) {
    if (volume.emptyDir === undefined && !volume.projected && !claims.has(volume.name)) {
      const message = 'the embedded cluster has emptyDir, projected and persistentVolumeClaim volumes only';
      throw new ContainerConfigError(`volume "${volume.name}": ${message}`);
    }
  }
  const mounts = spec.containers.flatMap((container) => container.volumeMounts ?? []);
  const known = new Map<string, string>();
  // Parents are created before mounts inside them.
  for (const mount of mounts.toSorted((a, b) => a.mountPath.length - b.mountPath.length)) {
    if (mount.subPath)
      throw new ContainerConfigError(`volume mount "${mount.name}": the embedded cluster has no subPath`);
    if (!spec.volumes?.some((volume) => volume.name === mount.name)) {
      throw new ContainerConfigError(`volume mount "${mount.name}": the pod has no such volume`);
    }
    const path = underRoot(root, mount.mountPath);
    const first = known.get(mount.name) ?? claims.get(mount.name);
    mkdirSync(first ? dirname(path) : path, { recursive: true, mode: 0o700 });
    if (first && first !== path) link(first, path);
    known.set(mount.name, first ?? path);
  }
}

/** Makes a link where an earlier attempt may have left one. */
function link(target: string, path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
    if (readlinkSync(path) === target) return;
    unlinkSync(path);
  }
  symlinkSync(target, path);
}

/** Returns a container's working directory: one inside a mount is in the pod's root, any other is this machine's. */
export function workingDirectory(root: string, spec: PodSpec, workingDir: string | undefined): string {
  if (!workingDir) return root;
  const inside = (mountPath: string) =>
    workingDir === mountPath || workingDir.startsWith(`${mountPath.replace(/\/$/, '')}/`);
  const mounts = spec.containers.flatMap((container) => container.volumeMounts ?? []);
  return mounts.some((mount) => inside(mount.mountPath)) ? underRoot(root, workingDir) : workingDir;
}
