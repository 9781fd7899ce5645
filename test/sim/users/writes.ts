import type { KubeObject, Resource } from '../../../core/kube/types.ts';
import {
  approvals,
  type environments,
  type StoredSession,
  type StoredTurn,
  type sessionclasses,
  type sessionpools,
  type sessions,
  turns,
} from '../../../core/resources/kinds.ts';
import type { SimServer } from '../api/server.ts';
import { aPlan } from './specs.ts';
import type { Users } from './users.ts';

/** Writes of users to single objects, as with kubectl. */

type Kind =
  | typeof sessionpools
  | typeof environments
  | typeof sessions
  | typeof turns
  | typeof sessionclasses
  | typeof approvals;

/** Ignores a refusal, because the name is taken or the object is gone. */
export const nothing = () => undefined;

export function create(server: SimServer, kind: Kind, namespace: string | undefined, name: string, spec: object) {
  const object = {
    apiVersion: `${kind.group}/${kind.version}`,
    kind: kind.kind,
    metadata: { ...(namespace ? { namespace } : {}), name },
    spec,
  };
  return server.admin.create(kind as typeof sessions, object as StoredSession).catch(nothing);
}

export function edit(server: SimServer, kind: Kind, object: { metadata: { name: string } }, spec: object) {
  return server.admin.patch(kind as typeof sessions, object.metadata, { spec }, { type: 'merge' }).catch(nothing);
}

/** Changes labels or annotations. */
export function note<T extends KubeObject>(
  server: SimServer,
  kind: Resource<T>,
  object: { metadata: { name: string } },
  metadata: object,
) {
  return server.admin.patch(kind, object.metadata, { metadata }, { type: 'merge' }).catch(nothing);
}

export function give(users: Users, session: StoredSession, name: string, timeout?: string): Promise<unknown> {
  const { dice } = users;
  const spec = {
    session: session.metadata.name,
    input: aPlan(users),
    ...(timeout ? { timeout } : {}),
    ...(dice.chance(0.2) ? { retry: { maxAttempts: dice.int(2, 3) } } : {}),
  };
  return create(users.server, turns, session.metadata.namespace, name, spec);
}

/** Creates a decision on a turn's request, or on one that it has not made. */
export function decide({ server, dice }: Users, { metadata }: StoredTurn, name: string, requestId = 'none') {
  return create(server, approvals, metadata.namespace, name, {
    turn: metadata.name,
    requestId,
    decision: dice.pick(['Approve', 'Deny']),
    ...(dice.chance(0.3) ? { response: { number: dice.int(1, 1000) } } : {}),
  });
}
