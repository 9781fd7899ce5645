import type { AgentFile } from '../../core/resources/agent.ts';
import { LABEL_AGENT_FILES } from '../../core/resources/names.ts';
import { configMapsIn } from '../observed/agent-files.ts';
import type { Problem, World } from '../observed/world.ts';

/** Problem of an agent whose ConfigMap with files does not exist, or is not known. */
export function missingFiles(sources: readonly AgentFile[], present: World['agentFiles']): Problem | undefined {
  const [missing] = [...configMapsIn(sources)].filter((name) => !present?.has(name));
  if (missing === undefined) return undefined;
  return { reason: 'AgentFilesMissing', message: present ? noConfigMap(missing) : UNREAD };
}

const UNREAD =
  'agent.files: the controller has not read the ConfigMaps of the namespace; if that lasts, set the chart’s value controller.agentFiles to true, which gives it the right to';

/** Message for a ConfigMap without which an agent has not all of its files. */
export function noConfigMap(name: string): string {
  return `agent.files: there is no ConfigMap "${name}" with the label ${LABEL_AGENT_FILES}: "true" in the session's namespace; create it, or label the one that is there`;
}
