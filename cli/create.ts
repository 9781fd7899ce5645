import { isNotFound } from '../core/kube/errors.ts';
import {
  ownedBy,
  type StoredSession,
  type StoredTurn,
  sessionclasses,
  sessions,
  turns,
} from '../core/resources/kinds.ts';
import type { SessionSpec } from '../core/resources/session.ts';
import { type AgentFlags, agentFrom } from './agent.ts';
import type { Cli } from './cli.ts';
import type { Cluster } from './cluster.ts';
import { refused } from './errors.ts';

export interface SessionFlags extends AgentFlags {
  class: string;
  image?: string;
}

/** The spec of a new session from the flags; everything that can be known to be wrong is refused here. */
export async function sessionSpec(
  words: string[],
  flags: SessionFlags,
  turnsWanted: SessionSpec['turns'],
  cluster: Cluster,
  cli: Cli,
): Promise<SessionSpec> {
  const agent = agentFrom(words, flags, { embedded: cluster.embedded, cwd: cli.cwd, env: cli.env });
  const hasProgram = await classHasProgram(flags.class, cluster, cli);
  if (!agent?.command && hasProgram === false) {
    throw refused(
      `there is no program to run: class "${flags.class}" has none of its own; put it at the end: -- python3 agent.py`,
    );
  }
  return {
    class: flags.class,
    ...(agent ? { agent } : {}),
    ...(flags.image === undefined ? {} : { image: flags.image }),
    suspend: false,
    persistence: { state: true },
    turns: turnsWanted,
  };
}

/** Whether the class names a program; undefined where the caller may not read classes. Refuses a class that is not there. */
async function classHasProgram(name: string, { api }: Cluster, cli: Cli): Promise<boolean | undefined> {
  try {
    const found = await api.get(sessionclasses, { name }, { signal: cli.interrupted });
    return found.spec.agent?.command !== undefined;
  } catch (error) {
    if ((error as { code?: unknown }).code === 403) return undefined;
    if (!isNotFound(error)) throw error;
    const { items } = await api.list(sessionclasses, { signal: cli.interrupted });
    const names = items.map(({ metadata }) => metadata.name);
    throw refused(
      `--class: there is no SessionClass "${name}"; ${names.length ? `there is ${names.join(', ')}` : 'this cluster has none'}`,
    );
  }
}

export function createSession(name: string, spec: SessionSpec, cluster: Cluster, cli: Cli): Promise<StoredSession> {
  const { api, namespace } = cluster;
  return api.create(sessions, { metadata: { name, namespace }, spec }, { signal: cli.interrupted });
}

/** A turn that goes with its session when that is deleted. */
export function createTurn(
  { name, input, timeout }: { name: string; input: unknown; timeout?: string | undefined },
  session: StoredSession,
  cluster: Cluster,
  cli: Cli,
): Promise<StoredTurn> {
  const spec = {
    session: session.metadata.name,
    cancel: false,
    ...(input === undefined ? {} : { input }),
    ...(timeout === undefined ? {} : { timeout }),
  };
  const { namespace } = cluster;
  const metadata = { name, namespace, ownerReferences: [ownedBy(session)] };
  return cluster.api.create(turns, { metadata, spec }, { signal: cli.interrupted });
}
