import { isForbidden, isNotFound } from '../core/kube/errors.ts';
import { sessionRefusal, turnRefusal } from '../core/resources/allowed.ts';
import {
  ownedBy,
  type StoredSession,
  type StoredTurn,
  sessionclasses,
  sessions,
  turns,
} from '../core/resources/kinds.ts';
import { isNoInput } from '../core/resources/needed-input.ts';
import { missingProgram } from '../core/resources/program.ts';
import type { Refusal } from '../core/resources/refusal.ts';
import type { SessionSpec } from '../core/resources/session.ts';
import type { SessionClassSpec } from '../core/resources/sessionclass.ts';
import { type AgentFlags, agentFrom } from './agent.ts';
import type { Cli } from './cli.ts';
import type { Cluster } from './cluster.ts';
import { environmentFor, type RequirementFlags, readRequirements } from './environments.ts';
import { CliError, refused } from './errors.ts';
import { createFiles, filesSource } from './files.ts';
import { refuseMissingInput } from './input.ts';
import { getSession } from './stored.ts';

export interface SessionFlags extends AgentFlags, RequirementFlags {
  class: string;
  environment?: string;
  image?: string;
  parent?: string;
}

/**
 * Builds the spec of a new session from the flags; every error that can be known now is reported here. `first`: the turn
 * that the session is made for.
 */
export async function sessionSpec(
  name: string,
  words: string[],
  flags: SessionFlags,
  own: Pick<SessionSpec, 'turns' | 'timeouts'>,
  cluster: Cluster,
  cli: Cli,
  first?: AskedTurn,
): Promise<SessionSpec> {
  const { embedded } = cluster;
  const files = flags.with && filesSource(name);
  const hasEnvironment = flags.environment !== undefined || flags.requirements !== undefined;
  const agent = agentFrom(words, { ...flags, files, hasEnvironment }, { embedded, cwd: cli.cwd, env: cli.env });
  const allowed = await readClass(flags.class, cluster, cli);
  // The caller's directory is only a default: it is left out where the class does not allow it.
  if (agent && flags.workdir === undefined && allowed && !allowed.overrides.includes('agent.workingDir')) {
    delete agent.workingDir;
  }
  if (!agent?.command && allowed && needsProgram(allowed)) {
    throw refused(
      `there is no program to run: class "${flags.class}" has none of its own; put it at the end: -- python3 agent.py`,
    );
  }
  const spec: SessionSpec = {
    class: flags.class,
    ...(agent ? { agent } : {}),
    ...(flags.image === undefined ? {} : { image: flags.image }),
    ...(flags.parent === undefined ? {} : { parent: await parentOf(flags.parent, cluster, cli) }),
    suspend: false,
    ...own,
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
  if (requirements) {
    const { class: sessionClass, image } = spec;
    const { python } = flags;
    const wanted = { class: sessionClass, requirements, ...(image ? { image } : {}), ...(python ? { python } : {}) };
    spec.environment = { name: await environmentFor(wanted, cluster, cli) };
  }
  return spec;
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

/** Refuses a spec that its class does not allow, by the flag or the field. */
export async function checkAllowed(spec: SessionSpec, cluster: Cluster, cli: Cli): Promise<void> {
  refuseUnlessAllowed(spec, await readClass(spec.class, cluster, cli));
}

function refuseUnlessAllowed(spec: SessionSpec, allowed: SessionClassSpec | undefined): void {
  refuse(allowed && sessionRefusal(spec, allowed), spec.class);
}

/** Fields of a turn that its class and the session's agent have a say in. */
type AskedTurn = Pick<GivenTurn, 'timeout' | 'input'>;

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

function refuseTurn(
  { timeout, input }: AskedTurn,
  session: Pick<SessionSpec, 'class' | 'agent'>,
  allowed: SessionClassSpec,
): void {
  refuse(timeout === undefined ? undefined : turnRefusal({ timeout }, allowed), session.class);
  refuseMissingInput(input, session.agent, allowed);
}

function refuse(problem: Refusal | undefined, className: string): void {
  if (problem) throw refused(`${flagOf(problem.field)}${problem.field}: ${problem.message} (class "${className}")`);
}

const FLAGS: Record<string, string> = {
  'spec.agent.command': '-- PROGRAM',
  'spec.agent.args': '-- PROGRAM',
  'spec.agent.env': '--env',
  'spec.agent.files': '--with',
  'spec.agent.input': '--input-as',
  'spec.agent.result': '--result',
  'spec.agent.workingDir': '--workdir',
  'spec.environment': '--environment or --requirements',
  'spec.image': '--image',
  'spec.timeout': '--timeout',
  'spec.timeouts': '--timeout',
};

/** Returns the part of the command line that sets the field, before its path. */
function flagOf(field: string): string {
  const flag = Object.entries(FLAGS).find(([path]) => `${field}.`.startsWith(`${path}.`))?.[1];
  return flag ? `${flag} sets ` : '';
}

/**
 * Reports whether sessions of the class must name a program. Without a runner the image has one; Shell and Tools need
 * none.
 */
function needsProgram({ agent, runner }: SessionClassSpec): boolean {
  return runner !== 'None' && missingProgram(agent ?? {}) !== undefined;
}

/** Returns the class; undefined if the caller may not read classes. Refuses a class that does not exist. */
async function readClass(name: string, cluster: Cluster, cli: Cli): Promise<SessionClassSpec | undefined> {
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

/**
 * Creates a session and what belongs to it: `archive` of its agent's files, and what `more` adds. Where that fails the session
 * is deleted again, so that both exist or neither.
 */
export async function createSession<T>(
  { name, spec, archive }: { name: string; spec: SessionSpec; archive: Buffer | undefined },
  cluster: Cluster,
  cli: Cli,
  more: (session: StoredSession) => Promise<T>,
): Promise<T> {
  const { api, namespace } = cluster;
  const object = { metadata: { name, namespace }, spec: { ...spec, ...(await cluster.author()) } };
  const session = await api.create(sessions, object, { signal: cli.interrupted });
  try {
    if (archive) await createFiles(archive, session, cluster, cli);
    return await more(session);
  } catch (error) {
    await api.delete(sessions, { namespace, name }, { uid: session.metadata.uid, deadlineMs: 5_000 }).catch(() => {
      cli.say(`session ${name} is left incomplete; remove it with: ${cli.name} delete ${name}`);
    });
    throw error;
  }
}

export interface GivenTurn {
  name: string;
  input: unknown;
  timeout?: string | undefined;
  attempts?: number | undefined;
}

/** Creates a turn that is deleted together with its session. */
export async function createTurn(
  { name, input, timeout, attempts }: GivenTurn,
  session: StoredSession,
  cluster: Cluster,
  cli: Cli,
): Promise<StoredTurn> {
  const spec = {
    session: session.metadata.name,
    cancel: false,
    ...(input === undefined ? {} : { input }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(attempts === undefined ? {} : { retry: { maxAttempts: attempts } }),
    ...(await cluster.author()),
  };
  const { namespace } = cluster;
  const metadata = { name, namespace, ownerReferences: [ownedBy(session)] };
  return cluster.api.create(turns, { metadata, spec }, { signal: cli.interrupted });
}
