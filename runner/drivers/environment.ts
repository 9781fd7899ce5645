import { join } from 'node:path';
import { TurnFailure } from '../../core/result/failure.ts';
import { expand } from '../../core/text/placeholders.ts';
import { type Directories, socketPath } from '../system/directories.ts';
import type { SessionFacts } from './driver.ts';

/**
 * Returns the whole environment of an agent: the variables listed here and those of the session's `agent.env`. The only
 * variable inherited from the runner is the image's PATH.
 */
export function agentEnvironment(
  facts: SessionFacts,
  directories: Directories,
  path: string,
  berth: Record<string, string>,
): Record<string, string> {
  const env: Record<string, string> = {
    PATH: path,
    HOME: directories.tmp,
    TMPDIR: directories.tmp,
    USER: 'agent',
    LOGNAME: 'agent',
    SHELL: '/bin/sh',
    LANG: 'C.UTF-8',
    LC_ALL: 'C.UTF-8',
    PYTHONUNBUFFERED: '1',
    PYTHONDONTWRITEBYTECODE: '1',
    // Sets and hashes of strings have the same order in every process, so that equal inputs give equal outputs.
    PYTHONHASHSEED: '0',
    PYTHONIOENCODING: 'utf-8',
    // Python takes an empty value for none; the image may set another.
    PYTHONPATH: '',
  };
  const variables = standardVariables(facts, directories);
  for (const entry of facts.agent.env) {
    env[entry.name] = 'secret' in entry ? secretValue(facts, entry.name, entry.secret) : expand(entry.value, variables);
  }
  return {
    ...env,
    BERTH_SOCKET: socketPath(directories),
    ...(facts.takesArtifacts && { BERTH_OUTPUT_DIR: directories.output }),
    ...(facts.hasFiles && { BERTH_AGENT_DIR: directories.agent }),
    ...(facts.hasEnvironment && { VIRTUAL_ENV: join(directories.environment, 'venv') }),
    ...(facts.agent.secretFiles && { BERTH_SECRETS_DIR: directories.secrets }),
    ...berth,
  };
}

/** Returns the values of `$(NAME)` in `agent.args` and `agent.env`. */
export function standardVariables(facts: SessionFacts, directories: Directories): (name: string) => string | undefined {
  return (name) => {
    if (name === 'BERTH_STATE_DIR') return directories.state;
    if (name === 'BERTH_OUTPUT_DIR') return facts.takesArtifacts ? directories.output : undefined;
    if (name === 'BERTH_SECRETS_DIR') return directories.secrets;
    if (name === 'BERTH_AGENT_DIR') return facts.hasFiles ? directories.agent : undefined;
    if (name === 'SESSION_UID') return facts.uid;
    return undefined;
  };
}

function secretValue(facts: SessionFacts, name: string, variable: string): string {
  const value = facts.secrets.get(variable);
  if (value === undefined) {
    throw new TurnFailure(
      'PodConfigError',
      `agent.env ${name}: its secret was not given to the pod (variable ${variable})`,
    );
  }
  return value;
}
