import { type Agent, isFilePath, isJsonPointer } from '../../core/resources/agent.ts';
import { MAX_INLINE_FILES_BYTES } from '../../core/resources/limits.ts';
import { missingProgram } from '../../core/resources/program.ts';
import { takesArguments, toolSchemaProblem } from '../../core/resources/tool-schema.ts';
import { namesInput } from '../../core/text/placeholders.ts';
import type { Problem } from '../observed/world.ts';

type Field = keyof Agent;
type Driver = NonNullable<Agent['driver']>;

/** Drivers that support a setting; settings not listed are supported by all. */
const ONLY_FOR: { [field in Field]?: readonly Driver[] } = {
  server: ['Server'],
  shell: ['Shell'],
  tools: ['Tools'],
  maxParallel: ['Tools'],
  resumeArgs: ['Command', 'Server'],
  resumeWhen: ['Command', 'Server'],
  input: ['Command', 'Tools'],
  result: ['Command', 'Tools'],
  jsonLines: ['Command', 'Tools'],
  command: ['Command', 'Server', 'Tools'],
  args: ['Command', 'Server', 'Tools'],
};

/** The first missing or contradictory agent setting, named by the user's own field. */
export function agentProblem(agent: Agent): Problem | undefined {
  const { driver = 'Command' } = agent;
  const unused = (Object.keys(ONLY_FOR) as Field[]).find(
    (field) => agent[field] !== undefined && !ONLY_FOR[field]?.includes(driver),
  );
  if (unused) {
    const which = (ONLY_FOR[unused] ?? []).join(' and ');
    return invalid(
      unused,
      `is set, but the driver ${driver} has no use for it; leave it out, or set agent.driver (${which})`,
    );
  }
  const missing = missingProgram(agent);
  if (missing) return invalid('command', missing);
  if (agent.resumeWhen !== undefined && agent.resumeArgs === undefined) {
    return invalid(
      'resumeWhen',
      'is set, but agent.resumeArgs is not; set the arguments to go on with, or leave it out',
    );
  }
  return (
    resultProblem(agent) ??
    secretFilesProblem(agent) ??
    filesProblem(agent) ??
    (driver === 'Tools' ? toolsProblem(agent) : undefined)
  );
}

/** Settings that a runnerless pod gets through its pod spec; nothing would apply the others. */
const RUNNERLESS_FIELDS: readonly Field[] = ['command', 'args', 'workingDir', 'env', 'secretFiles'];

export function runnerlessAgentProblem(agent: Agent): Problem | undefined {
  const unused = (Object.keys(agent) as Field[]).find(
    (field) => agent[field] !== undefined && !RUNNERLESS_FIELDS.includes(field),
  );
  if (unused) return invalid(unused, 'is set, but with the class’s runner None nobody obeys it; leave it out');
  return secretFilesProblem(agent);
}

function invalid(field: string, problem: string): Problem {
  return { reason: 'InvalidSpec', message: `spec.agent.${field}: ${problem}` };
}

function resultProblem({ result = 'Envelope', jsonLines }: Agent): Problem | undefined {
  if (result === 'JsonLines' && !jsonLines) {
    return invalid('jsonLines', 'is not set, but agent.result is JsonLines; say where the result stands');
  }
  if (result !== 'JsonLines' && jsonLines) {
    return invalid('jsonLines', `is set, but agent.result is ${result}; set it to JsonLines or leave this out`);
  }
  if (jsonLines?.error !== undefined && !jsonLines.errorWhen) {
    return invalid('jsonLines.error', 'is set, but errorWhen is not; say which line is an error, or leave it out');
  }
  // A CustomResourceDefinition cannot check the keys of a map.
  for (const when of ['resultWhen', 'outputWhen', 'errorWhen'] as const) {
    const wrong = Object.keys(jsonLines?.[when] ?? {}).find((key) => !isJsonPointer(key));
    if (wrong !== undefined) {
      return invalid(`jsonLines.${when}`, `"${wrong}" is no JSON pointer; one begins with "/", for example /type`);
    }
  }
  return undefined;
}

function secretFilesProblem({ secretFiles = [] }: Agent): Problem | undefined {
  const paths = secretFiles.map(({ path }) => path);
  const inside = paths.find((path) => paths.some((other) => path.startsWith(`${other}/`)));
  return inside ? invalid('secretFiles', `"${inside}" is below another file; choose another path`) : undefined;
}

/** The first problem with the session's own files; those of ConfigMaps are checked when they are unpacked. */
function filesProblem({ files = [] }: Agent): Problem | undefined {
  let bytes = 0;
  for (const { items = [], inline = {} } of files) {
    const paths = [...items.map(({ path }) => path), ...Object.keys(inline)];
    const wrong = paths.find((path) => !isFilePath(path));
    if (wrong !== undefined) {
      return invalid(
        'files',
        `${JSON.stringify(wrong)} is no relative path of at most 253 characters without "." and ".."`,
      );
    }
    for (const [path, content] of Object.entries(inline)) bytes += Buffer.byteLength(path) + Buffer.byteLength(content);
  }
  if (bytes <= MAX_INLINE_FILES_BYTES) return undefined;
  return invalid(
    'files',
    `the inline files have ${bytes} bytes; at most ${MAX_INLINE_FILES_BYTES} are allowed: put them into a ConfigMap`,
  );
}

function toolsProblem({ tools = [], command = [], args = [], input }: Agent): Problem | undefined {
  if (input === 'Text') {
    return invalid('input', 'is Text, but the arguments of a tool are an object; set Stdin, File or Args');
  }
  if (tools.length === 0) return invalid('tools', 'is not set, but the driver is Tools; say what can be called');
  for (const { name, command: own, method, parameters } of tools) {
    if (method !== undefined && command.length === 0) {
      return invalid(
        'command',
        `is not set, but tool ${name} is a method of it; set the program that gets the request`,
      );
    }
    const problem = parameters === undefined ? undefined : toolSchemaProblem(parameters);
    if (problem) return invalid('tools', `${name}: parameters: ${problem}`);
    if (input === 'Args' && takesArguments(parameters) && !namesInput(own?.slice(1) ?? args)) {
      const [where, what] = own ? ['tools', `${name}: command `] : ['args', `(of tool ${name}) `];
      return invalid(
        where,
        `${what}has no $(INPUT) or $(INPUT.field), but agent.input is Args and the tool has parameters; name them there, or set agent.input to Stdin or File`,
      );
    }
  }
  return undefined;
}
