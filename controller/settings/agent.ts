import type { AgentSpec, ToolSpec } from '../../core/frames/messages.ts';
import type { Agent, AgentFile, EnvVar } from '../../core/resources/agent.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import { mergedAgent } from '../../core/resources/merged-agent.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { Problem } from '../observed/world.ts';
import { agentProblem, runnerlessAgentProblem } from './agent-problems.ts';

const DEFAULT_PARALLEL = 4;
const DEFAULT_TOOL_MS = 30_000;

type Tool = NonNullable<Agent['tools']>[number];

/** Settings of a session's agent and the Secrets that its pod needs for them. */
export interface AgentSettings {
  agent: AgentSpec;
  /** Variables of the runner's container that the kubelet fills from Secrets; the agent sees them under their own names. */
  secrets: { variable: string; name: string; key: string }[];
  /** Files of the runner's container that the kubelet makes from Secrets. */
  secretFiles: { path: string; name: string; key: string }[];
  /** Sources of the agent's files: the class's, then the session's. */
  files: readonly AgentFile[];
}

/** Merges the session's settings over its class's, and `given` variables under both; or the problem with the result. */
export function agentSettings(
  own: Agent,
  defaults: Agent,
  given: EnvVar[] = [],
  runner: SessionClassSpec['runner'] = 'Embedded',
): AgentSettings | Problem {
  const merged = mergedAgent(own, defaults);
  const problem = runner === 'None' ? runnerlessAgentProblem(merged) : agentProblem(merged);
  if (problem) return problem;
  const {
    driver = 'Command',
    command = [],
    workingDir,
    input = 'Stdin',
    result = 'Envelope',
    server,
    shell,
    jsonLines,
    tools = [],
    files = [],
    maxParallel = DEFAULT_PARALLEL,
  } = merged;
  const { env, secrets } = environment(given, defaults.env ?? [], own.env ?? []);
  const secretFiles = uniquePaths(defaults.secretFiles ?? [], own.secretFiles ?? []);
  const resumeArgs = own.resumeArgs ?? (own.command || own.args ? undefined : merged.resumeArgs);
  return {
    agent: {
      driver,
      command,
      // The class's arguments belong to the class's command.
      args: own.args ?? (own.command || driver === 'Shell' ? [] : (defaults.args ?? [])),
      ...(resumeArgs ? { resumeArgs } : {}),
      ...(resumeArgs && merged.resumeWhen ? { resumeWhen: merged.resumeWhen } : {}),
      ...(workingDir ? { workingDir } : {}),
      env,
      ...(secretFiles.length > 0 ? { secretFiles: secretFiles.map(({ path }) => ({ path })) } : {}),
      input,
      result,
      ...(jsonLines && result === 'JsonLines' ? { jsonLines: lines(jsonLines) } : {}),
      ...(driver === 'Server' ? { server: { leftovers: server?.leftovers ?? 'Restart' } } : {}),
      ...(driver === 'Tools' ? { tools: tools.map(toolSpec), maxParallel } : {}),
      ...(driver === 'Shell' ? { shell: { rewriteBackground: shell?.rewriteBackground ?? true } } : {}),
    },
    secrets,
    secretFiles,
    files,
  };
}

function toolSpec({ name, description = '', parameters, command, method, timeout }: Tool): ToolSpec {
  return {
    name,
    description,
    parameters: (parameters ?? { type: 'object' }) as ToolSpec['parameters'],
    ...(command ? { command } : {}),
    ...(method ? { method } : {}),
    timeoutMs: timeout ? parseDuration(timeout) : DEFAULT_TOOL_MS,
  };
}

/** Copies only the fields that are set: the runner distinguishes an absent field from an undefined one. */
function lines(spec: NonNullable<Agent['jsonLines']>): NonNullable<AgentSpec['jsonLines']> {
  return JSON.parse(JSON.stringify(spec));
}

/** Later files replace earlier ones of the same path. */
function uniquePaths(...lists: NonNullable<Agent['secretFiles']>[]): AgentSettings['secretFiles'] {
  const byPath = new Map(lists.flat().map(({ path, secretKeyRef }) => [path, { path, ...secretKeyRef }]));
  return [...byPath.values()];
}

/** Later variables replace earlier ones of the same name. */
function environment(...lists: EnvVar[][]): { env: AgentSpec['env']; secrets: AgentSettings['secrets'] } {
  const byName = new Map(lists.flat().map((variable) => [variable.name, variable]));
  const env: AgentSpec['env'] = [];
  const secrets: AgentSettings['secrets'] = [];
  for (const variable of byName.values()) {
    if (variable.valueFrom) {
      const inPod = `BERTH_SECRET_${secrets.length}`;
      secrets.push({ variable: inPod, ...variable.valueFrom.secretKeyRef });
      env.push({ name: variable.name, secret: inPod });
    } else {
      env.push({ name: variable.name, value: variable.value ?? '' });
    }
  }
  return { env, secrets };
}
