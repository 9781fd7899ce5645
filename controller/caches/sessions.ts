import { keyOf } from '../../core/kube/cache.ts';
import { Informer } from '../../core/kube/informer.ts';
import type { KubeObject } from '../../core/kube/types.ts';
import { type Session, sessions } from '../../core/resources/kinds.ts';
import type { CachedSession } from '../observed/world.ts';
import { slimSession } from './slim.ts';
import type { RequiredTools } from './tools.ts';

export interface SessionLister {
  session(namespace: string, name: string): CachedSession | undefined;
  allSessions(): CachedSession[];
}

/** The cache of Sessions. */
export function sessionCache(tools: RequiredTools) {
  const informer = new Informer<Session, CachedSession>({
    ...tools,
    resource: sessions,
    transform: slimSession,
    unreadable: ({ spec: { input: _, ...spec }, ...session }) => ({ ...session, spec }),
  });
  const onSession = ({ metadata }: KubeObject) => tools.watchers.notify('session', keyOf(metadata));
  informer.addHandler({ add: onSession, update: onSession, delete: onSession });

  /** Tells of the sessions that depend on something else which has changed. */
  const tellOf = (depends: (session: CachedSession) => boolean) => {
    for (const session of informer.list()) if (depends(session)) onSession(session);
  };
  const lister: SessionLister = {
    session: (namespace, name) => informer.get(namespace, name),
    allSessions: () => informer.list(),
  };
  return { informer, lister, tellOf };
}

export type SessionCache = ReturnType<typeof sessionCache>;
