import { defined } from '../../core/defined.ts';
import type { AgentFile, EnvVar } from '../../core/resources/agent.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import { isFilesSource } from '../files/agent-files.ts';

/** Settings that an update gives to a session; what is left out stays as it is. */
export interface Change {
  /** Variables by name: those that the session has take the new value, others are added. */
  env: readonly EnvVar[];
  files?: AgentFile | undefined;
  /** Name of an Environment. */
  environment?: string | undefined;
  cpu?: string | undefined;
  memory?: string | undefined;
  idle?: string | undefined;
}

type Changed = Pick<SessionSpec, 'agent' | 'environment' | 'resources' | 'timeouts'>;

/**
 * Returns the fields that the change sets in the spec of the session of this name, each in full. The files of an earlier `--with` are
 * replaced where they stand; other sources stay.
 */
export function changedFields(name: string, spec: SessionSpec, change: Change): Changed {
  const { env, files, environment, idle } = change;
  const limits = { ...defined({ cpu: change.cpu, memory: change.memory }) };
  const agent = {
    ...(env.length > 0 ? { env: withVariables(spec.agent?.env ?? [], env) } : {}),
    ...(files ? { files: withFiles(name, spec.agent?.files ?? [], files) } : {}),
  };
  return {
    ...(Object.keys(agent).length > 0 ? { agent: { ...spec.agent, ...agent } } : {}),
    ...(environment === undefined ? {} : { environment: { name: environment } }),
    ...(Object.keys(limits).length > 0
      ? { resources: { ...spec.resources, limits: { ...spec.resources?.limits, ...limits } } }
      : {}),
    ...(idle === undefined ? {} : { timeouts: { ...spec.timeouts, idle } }),
  };
}

function withVariables(present: readonly EnvVar[], given: readonly EnvVar[]): EnvVar[] {
  const byName = new Map([...present, ...given].map((variable) => [variable.name, variable]));
  return [...byName.values()];
}

/** The new files stand where the first earlier ones of `--with` stood, else last, where they replace files of the other sources. */
function withFiles(session: string, present: readonly AgentFile[], given: AgentFile): AgentFile[] {
  const at = present.findIndex((source) => isFilesSource(source, session));
  const others = present.filter((source) => !isFilesSource(source, session));
  return at === -1 ? [...others, given] : others.toSpliced(at, 0, given);
}
