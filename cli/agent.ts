import type { Agent, AgentFile, EnvVar } from '../core/resources/agent.ts';
import type { Cli } from './cli.ts';
import { refused } from './errors.ts';
import { findProgram, findWorkingDirectory } from './program-path.ts';

export interface AgentFlags {
  env?: string[];
  workdir?: string;
  /** Files and folders to give to the agent. */
  with?: string[];
  withAll?: boolean;
  inputAs?: 'stdin' | 'text' | 'file' | 'args';
  result?: 'envelope' | 'json' | 'text';
}

const INPUT = { stdin: 'Stdin', text: 'Text', file: 'File', args: 'Args' } as const;
const RESULT = { envelope: 'Envelope', json: 'Json', text: 'Text' } as const;

/**
 * Builds `spec.agent` of a session from the flags and `-- PROGRAM ARGS…`; the rest is left to the class. On the
 * embedded cluster the program runs on this machine, so program and directory are resolved as the caller's shell would.
 */
export function agentFrom(
  words: string[],
  flags: AgentFlags & { files?: AgentFile | undefined; hasEnvironment?: boolean },
  { embedded, ...cli }: Pick<Cli, 'cwd' | 'env'> & { embedded: boolean },
): Agent | undefined {
  const [program, ...args] = words;
  // A program with a path is one of the agent's files, where there are any.
  const isOwn = flags.files !== undefined && program?.includes('/');
  // A program without one may be the environment's, whose programs come first on the session's PATH.
  const isNamed = flags.hasEnvironment === true && !program?.includes('/');
  const agent: Agent = {
    ...(program === undefined
      ? {}
      : { command: [embedded && !isOwn && !isNamed ? findProgram(program, cli) : program], args }),
    ...workingDir(flags, program !== undefined && flags.files === undefined, { embedded, cwd: cli.cwd }),
    ...(flags.files ? { files: [flags.files] } : {}),
    ...(flags.env ? { env: environment(flags.env, cli.env) } : {}),
    ...(flags.inputAs ? { input: INPUT[flags.inputAs] } : {}),
    ...(flags.result ? { result: RESULT[flags.result] } : {}),
  };
  return Object.keys(agent).length > 0 ? agent : undefined;
}

function workingDir(
  { workdir }: AgentFlags,
  hasProgram: boolean,
  { embedded, cwd }: { embedded: boolean; cwd: string },
): Pick<Agent, 'workingDir'> {
  if (embedded) {
    if (workdir === undefined && !hasProgram) return {};
    return { workingDir: findWorkingDirectory(workdir ?? '.', cwd) };
  }
  if (workdir === undefined) return {};
  if (!workdir.startsWith('/')) {
    throw refused(
      `--workdir: ${workdir} is not absolute; on a cluster it is a directory of the image, for example /work`,
    );
  }
  return { workingDir: workdir };
}

/**
 * Parses `NAME=VALUE`, or `NAME` alone for the caller's own value. A later one replaces an earlier one of the same
 * name.
 */
function environment(texts: string[], own: NodeJS.ProcessEnv): EnvVar[] {
  const byName = new Map<string, EnvVar>();
  for (const text of texts) {
    const [, name, value = own[text]] = /^([^=]*)(?:=(.*))?$/s.exec(text) as unknown as [string, string, string?];
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw refused(`--env ${text}: "${name}" is no variable name; write NAME=VALUE, or NAME for your own value`);
    }
    if (name.startsWith('BERTH_')) {
      throw refused(`--env ${name}: names that begin with BERTH_ are Berth's own; choose another name`);
    }
    if (value === undefined) {
      throw refused(`--env ${name}: it is not set in your environment; write --env ${name}=VALUE`);
    }
    byName.set(name, { name, value });
  }
  return [...byName.values()];
}
