import type { Agent, AgentFile, EnvVar } from '../../core/resources/agent.ts';
import type { Cli } from '../cli.ts';
import { refused } from '../errors.ts';
import { findProgram, findWorkingDirectory } from './program-path.ts';

export interface AgentFlags {
  driver?: 'command' | 'server' | 'shell' | 'tools';
  env?: string[];
  /** NAME=SECRET/KEY. */
  envFromSecret?: string[];
  workdir?: string;
  /** Files and folders to give to the agent. */
  with?: string[];
  withAll?: boolean;
  inputAs?: 'stdin' | 'text' | 'file' | 'args';
  result?: 'envelope' | 'json' | 'text';
}

const DRIVER = { command: 'Command', server: 'Server', shell: 'Shell', tools: 'Tools' } as const;
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
  const env = variablesFrom(flags, cli);
  const agent: Agent = {
    ...(flags.driver ? { driver: DRIVER[flags.driver] } : {}),
    ...(program === undefined
      ? {}
      : { command: [embedded && !isOwn && !isNamed ? findProgram(program, cli) : program], args }),
    ...workingDir(flags, program !== undefined && flags.files === undefined, { embedded, cwd: cli.cwd }),
    ...(flags.files ? { files: [flags.files] } : {}),
    ...(env.length > 0 ? { env } : {}),
    ...(flags.inputAs ? { input: INPUT[flags.inputAs] } : {}),
    ...(flags.result ? { result: RESULT[flags.result] } : {}),
  };
  return Object.keys(agent).length > 0 ? agent : undefined;
}

/** Variables of `--env` and `--env-from-secret`, each name once. */
export function variablesFrom({ env, envFromSecret }: AgentFlags, cli: Pick<Cli, 'env'>): EnvVar[] {
  const all = [...environment(env ?? [], cli.env), ...fromSecrets(envFromSecret ?? [])];
  const twice = all.find(({ name }, index) => all.findIndex((other) => other.name === name) !== index);
  if (twice) throw refused(`--env and --env-from-secret both set ${twice.name}; leave one of them out`);
  return all;
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
    checkName('--env', name, text, 'write NAME=VALUE, or NAME for your own value');
    if (value === undefined) {
      throw refused(`--env ${name}: it is not set in your environment; write --env ${name}=VALUE`);
    }
    byName.set(name, { name, value });
  }
  return [...byName.values()];
}

/** Parses `NAME=SECRET/KEY`. A later one replaces an earlier one of the same name. */
function fromSecrets(texts: string[]): EnvVar[] {
  const byName = new Map<string, EnvVar>();
  for (const text of texts) {
    const [, name = '', secret = '', key = ''] = /^([^=]*)(?:=([^/]*)(?:\/(.*))?)?$/s.exec(text) ?? [];
    const hint = 'write NAME=SECRET/KEY, for example API_KEY=model/key';
    checkName('--env-from-secret', name, text, hint);
    if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(secret)) {
      throw refused(`--env-from-secret ${text}: "${secret}" is no name of a Secret; ${hint}`);
    }
    if (!/^[-._A-Za-z0-9]+$/.test(key)) {
      throw refused(`--env-from-secret ${text}: "${key}" is no key of a Secret; ${hint}`);
    }
    byName.set(name, { name, valueFrom: { secretKeyRef: { name: secret, key } } });
  }
  return [...byName.values()];
}

function checkName(flag: string, name: string, text: string, hint: string): void {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw refused(`${flag} ${text}: "${name}" is no variable name; ${hint}`);
  if (name.startsWith('BERTH_')) {
    throw refused(`${flag} ${name}: names that begin with BERTH_ are Berth's own; choose another name`);
  }
}
