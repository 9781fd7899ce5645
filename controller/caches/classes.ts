import { Informer } from '../../core/kube/informer.ts';
import type { KubeObject } from '../../core/kube/types.ts';
import { type SessionClass, type StoredSessionClass, sessionclasses } from '../../core/resources/kinds.ts';
import type { SessionCache } from './sessions.ts';
import type { CacheTools } from './tools.ts';

export interface ClassLister {
  class(name: string): StoredSessionClass | undefined;
}

/** The cache of SessionClasses, which have no namespace. A change is passed to the sessions of the class. */
export function classCache({ namespaces: _, ...tools }: CacheTools, sessions: SessionCache) {
  const informer = new Informer<SessionClass>({ ...tools, resource: sessionclasses });
  const onClass = ({ metadata: { name } }: KubeObject) => {
    tools.watchers.notify('class', name);
    sessions.tellOf(({ spec }) => spec.class === name);
  };
  informer.addHandler({ add: onClass, update: onClass, delete: onClass });
  const lister: ClassLister = { class: (name) => informer.get(undefined, name) };
  return { informer, lister };
}

export type ClassCache = ReturnType<typeof classCache>;
