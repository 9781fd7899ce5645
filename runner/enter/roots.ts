import { realpath } from 'node:fs/promises';
import type { Root } from '../../core/enter/hello.ts';
import type { Bind } from '../../core/frames/messages.ts';
import { type Directories, located, workDirectory } from '../system/directories.ts';

/** Resolves with the folder of a root; undefined where the session has none. */
export type Roots = (root: Root) => Promise<string | undefined>;

/** Returns the folders that have a name for those outside. `localRoot`: BERTH_LOCAL_ROOT. */
export function rootsOf(bind: Bind, directories: Directories, localRoot: string | undefined): Roots {
  const mountPath = bind.workspace?.mountPath;
  const { workingDir } = bind.agent;
  const workspace = mountPath && located(mountPath, mountPath, localRoot);
  const work = workingDir ? located(workingDir, mountPath, localRoot) : workDirectory(bind, directories, localRoot);
  // The helper follows no link at a root's own place: the agent could put one there. Paths that a user named may be links.
  const named = (path: string) => realpath(path).catch(() => path);
  return async (root) => {
    switch (root) {
      case 'work':
        return workingDir || mountPath ? named(work) : work;
      case 'workspace':
        return workspace ? named(workspace) : undefined;
      case 'state':
        return directories.state;
      case 'output':
        return bind.artifacts ? directories.output : undefined;
      case 'agent':
        return bind.files ? directories.agent : undefined;
    }
  };
}
