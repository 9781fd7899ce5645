import { defined } from '../../core/defined.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { Cli } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { getSession } from '../cluster/stored.ts';
import { CliError, refused } from '../errors.ts';
import { filesSource } from '../files/agent-files.ts';
import { type AgentFlags, agentFrom } from './agent.ts';
import { type AskedTurn, readClass, refuseMissingProgram, refuseTurn, refuseUnlessAllowed } from './allowed.ts';
import { environmentName, type RequirementFlags, readRequirements } from './environments.ts';
import type { SpecWithEnvironment } from './new-objects.ts';

export interface SessionFlags extends AgentFlags, RequirementFlags {
  class?: string;
  environment?: string;
  image?: string;
  parent?: string;
  label?: Record<string, string>;
  cpu?: string;
  memory?: string;
  idle?: string;
}

export const DEFAULT_CLASS = 'default';

/**
 * Builds the spec of a new session from the flags; every error that can be known now is reported here, and nothing is
 * created. `first`: the turn that the session is made for.
 */
export async function sessionSpec(
  name: string,
  words: string[],
  flags: SessionFlags,
  own: Pick<SessionSpec, 'turns' | 'timeouts'>,
  cluster: Cluster,
  cli: Cli,
  first?: AskedTurn,
): Promise<SpecWithEnvironment> {
  const embedded = await cluster.embedded();
  const className = flags.class ?? DEFAULT_CLASS;
  const files = flags.with && filesSource(name);
  const hasEnvironment = flags.environment !== undefined || flags.requirements !== undefined;
  const agent = agentFrom(words, { ...flags, files, hasEnvironment }, { embedded, cwd: cli.cwd, env: cli.env });
  const allowed = await readClass(className, cluster, cli);
  // The caller's directory is only a default: it is left out where the class does not allow it.
  if (agent && flags.workdir === undefined && allowed && !allowed.overrides.includes('agent.workingDir')) {
    delete agent.workingDir;
  }
  if (allowed) refuseMissingProgram(agent, className, allowed);
  const timeouts = { ...own.timeouts, ...defined({ idle: flags.idle }) };
  const spec: SessionSpec = {
    class: className,
    ...(agent ? { agent } : {}),
    ...defined({ image: flags.image }),
    ...resources(flags),
    ...(flags.parent === undefined ? {} : { parent: await parentOf(flags.parent, cluster, cli) }),
    suspend: false,
    turns: own.turns,
    ...(Object.keys(timeouts).length > 0 ? { timeouts } : {}),
  };
  if (flags.python !== undefined && flags.requirements === undefined)
    throw refused('--python says for which Python --requirements are; give both, or neither');
  const requirements = flags.requirements === undefined ? undefined : await readRequirements(flags.requirements, cli);
  if (flags.environment !== undefined) {
    if (requirements) throw refused('--environment and --requirements name two environments; leave one of them out');
    spec.environment = { name: flags.environment };
  } else if (requirements) spec.environment = { name: 'of-requirements' };
  refuseUnlessAllowed(spec, allowed);
  if (first && allowed) refuseTurn(first, spec, allowed);
  if (!requirements) return { spec };
  const environment = environmentOf(spec, requirements, flags.python);
  return { spec: { ...spec, environment: { name: environment.name } }, environment };
}

/** Returns the Environment with these requirements for a session of this spec, and its name. */
export function environmentOf(
  { class: sessionClass, image }: Pick<SessionSpec, 'class' | 'image'>,
  requirements: string[],
  python: string | undefined,
): NonNullable<SpecWithEnvironment['environment']> {
  const spec = { class: sessionClass, requirements, ...(image ? { image } : {}), ...(python ? { python } : {}) };
  return { name: environmentName(spec), spec };
}

/** Limits alone: a request above a limit is lowered to it. */
function resources({ cpu, memory }: SessionFlags): Pick<SessionSpec, 'resources'> {
  const limits = { ...defined({ cpu, memory }) };
  return Object.keys(limits).length > 0 ? { resources: { limits } } : {};
}

/** Returns the reference to the parent, without its uid if the caller may not read it. Refuses one that does not exist. */
async function parentOf(name: string, cluster: Cluster, cli: Cli): Promise<SessionSpec['parent']> {
  try {
    const { uid } = (await getSession(cluster, name, cli.interrupted)).metadata;
    return { name, uid };
  } catch (error) {
    if ((error as { code?: unknown }).code === 403) return { name };
    throw error instanceof CliError ? refused(`--parent: ${error.message}`) : error;
  }
}
