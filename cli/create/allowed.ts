import { isForbidden, isNotFound } from '../../core/kube/errors.ts';
import type { Agent } from '../../core/resources/agent.ts';
import { sessionRefusal, turnRefusal } from '../../core/resources/allowed.ts';
import { sessionclasses } from '../../core/resources/kinds.ts';
import { mergedAgent } from '../../core/resources/merged-agent.ts';
import { isNoInput } from '../../core/resources/needed-input.ts';
import { missingProgram } from '../../core/resources/program.ts';
import type { Refusal } from '../../core/resources/refusal.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { Cli } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { refused } from '../errors.ts';
import { refuseMissingInput } from '../input/input.ts';

/** Checks of a session or a turn against its class, before anything is created. */

/** Fields of a turn that its class and the session's agent have a say in. */
export interface AskedTurn {
  input: unknown;
  timeout?: string | undefined;
}

/** Refuses a spec that its class does not allow, by the flag or the field. */
export async function checkAllowed(spec: SessionSpec, cluster: Cluster, cli: Cli): Promise<void> {
  refuseUnlessAllowed(spec, await readClass(spec.class, cluster, cli));
}

export function refuseUnlessAllowed(spec: SessionSpec, allowed: SessionClassSpec | undefined): void {
  refuse(allowed && sessionRefusal(spec, allowed), spec.class);
}

/**
 * Refuses a turn that the class of its session does not allow, or without the input that the session's agent needs, by
 * the flag. The controller judges where the class cannot be read.
 */
export async function checkTurn(
  turn: AskedTurn,
  session: Pick<SessionSpec, 'class' | 'agent'>,
  cluster: Cluster,
  cli: Cli,
): Promise<void> {
  if (turn.timeout === undefined && !isNoInput(turn.input)) return;
  const allowed = await findClass(session.class, cluster, cli);
  if (allowed && allowed !== 'NotFound') refuseTurn(turn, session, allowed);
}

export function refuseTurn(
  { timeout, input }: AskedTurn,
  session: Pick<SessionSpec, 'class' | 'agent'>,
  allowed: SessionClassSpec,
): void {
  refuse(timeout === undefined ? undefined : turnRefusal({ timeout }, allowed), session.class);
  refuseMissingInput(input, session.agent, allowed);
}

/**
 * Refuses an agent without a program where its class has none either. Without a runner the image has one; Shell and Tools
 * need none, but Tools needs tools.
 */
export function refuseMissingProgram(
  agent: Agent | undefined,
  className: string,
  { agent: defaults, runner }: SessionClassSpec,
): void {
  if (runner === 'None') return;
  const merged = mergedAgent(agent ?? {}, defaults ?? {});
  if (merged.driver === 'Tools' && !merged.tools) {
    throw refused(
      `the driver Tools has no tools to call: class "${className}" has none; set spec.agent.tools in a manifest and give it with -f, or name a class that has tools with --class`,
    );
  }
  if (missingProgram(merged) === undefined) return;
  throw refused(
    `there is no program to run: class "${className}" has none of its own; put it at the end: -- python3 agent.py`,
  );
}

function refuse(problem: Refusal | undefined, className: string): void {
  if (problem) throw refused(`${flagOf(problem.field)}${problem.field}: ${problem.message} (class "${className}")`);
}

/** Flags by the field that they set; of two that fit, the first is the more precise. */
const FLAGS: Record<string, string> = {
  'spec.agent.command': '-- PROGRAM',
  'spec.agent.args': '-- PROGRAM',
  'spec.agent.driver': '--driver',
  'spec.agent.env': '--env',
  'spec.agent.files': '--with',
  'spec.agent.input': '--input-as',
  'spec.agent.result': '--result',
  'spec.agent.workingDir': '--workdir',
  'spec.environment': '--environment or --requirements',
  'spec.image': '--image',
  'spec.resources.limits.cpu': '--cpu',
  'spec.resources.limits.memory': '--memory',
  'spec.resources': '--cpu or --memory',
  'spec.timeout': '--timeout',
  'spec.timeouts.idle': '--idle',
  'spec.timeouts.turn': '--timeout',
  'spec.timeouts': '--timeout or --idle',
};

/** Returns the part of the command line that sets the field, before its path. */
function flagOf(field: string): string {
  if (/^spec\.agent\.env\[\d+\]\.valueFrom/.test(field)) return '--env-from-secret sets ';
  const flag = Object.entries(FLAGS).find(
    ([path]) => `${field}.`.startsWith(`${path}.`) || field.startsWith(`${path}[`),
  );
  return flag ? `${flag[1]} sets ` : '';
}

/** Returns the class; undefined if the caller may not read classes. Refuses a class that does not exist. */
export async function readClass(name: string, cluster: Cluster, cli: Cli): Promise<SessionClassSpec | undefined> {
  const found = await findClass(name, cluster, cli);
  if (found !== 'NotFound') return found;
  const { items } = await cluster.api.list(sessionclasses, { signal: cli.interrupted });
  const names = items.map(({ metadata }) => metadata.name);
  throw refused(
    `--class: there is no SessionClass "${name}"; ${names.length ? `there is ${names.join(', ')}` : 'this cluster has none'}`,
  );
}

/** Returns the class; undefined if the caller may not read classes. */
export async function findClass(
  name: string,
  { api }: Cluster,
  cli: Cli,
): Promise<SessionClassSpec | 'NotFound' | undefined> {
  try {
    return (await api.get(sessionclasses, { name }, { signal: cli.interrupted })).spec;
  } catch (error) {
    if (isForbidden(error)) return undefined;
    if (isNotFound(error)) return 'NotFound';
    throw error;
  }
}
