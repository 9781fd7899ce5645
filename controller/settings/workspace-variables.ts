import type { EnvVar } from '../../core/resources/agent.ts';
import type { Workspace } from './persistence.ts';

/**
 * The top directory of a volume belongs to its provisioner, and git refuses a repository of another owner unless
 * `safe.directory` names it. Git reads that from the environment since 2.38.
 */
export function workspaceVariables(workspace: Workspace | undefined): EnvVar[] {
  if (!workspace) return [];
  return [
    { name: 'GIT_CONFIG_COUNT', value: '1' },
    { name: 'GIT_CONFIG_KEY_0', value: 'safe.directory' },
    { name: 'GIT_CONFIG_VALUE_0', value: workspace.mountPath },
  ];
}
