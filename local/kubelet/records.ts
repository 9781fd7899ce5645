/**
 * Records on disk of the pods that the kubelet has started, so that its successor neither starts one twice nor leaves
 * processes behind.
 */

import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { removeTree } from '../remove-tree.ts';
import type { ProcessIdentity } from './processes.ts';

const record = z.object({
  uid: z.string(),
  containers: z.record(
    z.string(),
    z.object({
      restartCount: z.number(),
      /** The process; undefined before its start and after its end. */
      process: z.object({ pid: z.number(), start: z.number(), bootId: z.string() }).optional(),
    }),
  ),
});

export type PodRecord = z.infer<typeof record>;

/** Folders under the home of the embedded cluster: `pods/<uid>` belongs to the pod, `kubelet/<uid>` to the kubelet. */
export class PodFolders {
  readonly #home: string;

  constructor(home: string) {
    this.#home = home;
    for (const folder of [this.roots, join(home, 'kubelet')]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** Folder of all pods' roots. */
  get roots(): string {
    return join(this.#home, 'pods');
  }

  /** Folder of the directories of PersistentVolumeClaims, which outlive pods. */
  get volumes(): string {
    return join(this.#home, 'volumes');
  }

  root(uid: string): string {
    return join(this.roots, uid);
  }

  log(uid: string, container: string, restartCount: number): string {
    return join(this.#folder(uid), 'logs', container, `${restartCount}.log`);
  }

  /**
   * Returns undefined when nothing of that pod was ever started here, and no containers for a record that a power loss has
   * left incomplete.
   */
  read(uid: string): PodRecord | undefined {
    let text: string;
    try {
      text = readFileSync(this.#record(uid), 'utf8');
    } catch {
      return undefined;
    }
    try {
      return record.parse(JSON.parse(text));
    } catch {
      return { uid, containers: {} };
    }
  }

  /** Writes the record before a process is started, again once its identity is known, and once it has ended. */
  write(pod: PodRecord): void {
    mkdirSync(this.#folder(pod.uid), { recursive: true, mode: 0o700 });
    const path = this.#record(pod.uid);
    writeFileSync(`${path}.new`, JSON.stringify(pod), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }

  /** Returns the pods that have a folder of either kind. */
  known(): string[] {
    const list = (folder: string) =>
      readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const names = [...list(this.roots), ...list(join(this.#home, 'kubelet'))].map((entry) => entry.name);
    return [...new Set(names)];
  }

  /** Returns the recorded first processes: those whose end no kubelet has recorded. */
  processes(): ProcessIdentity[] {
    return this.known().flatMap((uid) =>
      Object.values(this.read(uid)?.containers ?? {}).flatMap((container) => container.process ?? []),
    );
  }

  /** Folder for named pipes. */
  get pipes(): string {
    return join(this.#home, 'pipes');
  }

  /** Removes everything that a pod left on disk. */
  remove(uid: string): void {
    for (const folder of [this.root(uid), this.#folder(uid)]) removeTree(folder);
  }

  #folder(uid: string): string {
    return join(this.#home, 'kubelet', uid);
  }

  #record(uid: string): string {
    return join(this.#folder(uid), 'pod.json');
  }
}
