import { Informer } from '../../core/kube/informer.ts';
import { type Environment, environments, type StoredEnvironment } from '../../core/resources/kinds.ts';
import type { SessionCache } from './sessions.ts';
import { type CacheTools, ifKnown } from './tools.ts';

export interface EnvironmentLister {
  /** Returns an Environment, or that none exists; undefined while Environments were not read, or may not be read. */
  environment(namespace: string, name: string): StoredEnvironment | 'Missing' | undefined;
  allEnvironments(): StoredEnvironment[];
}

/** The cache of Environments. A change is passed to the sessions that name one. */
export function environmentCache(tools: CacheTools, sessions: SessionCache) {
  const informer = new Informer<Environment>({
    ...tools,
    // A session waits until it is known whether the Environment that it names is there. No event comes for one that is not.
    onKnown: () => sessions.tellOf(({ spec }) => spec.environment !== undefined),
    resource: environments,
  });
  const onEnvironment = ({ metadata: { namespace, name } }: StoredEnvironment) => {
    tools.watchers.notify('environment', namespace, name);
    sessions.tellOf(({ metadata, spec }) => metadata.namespace === namespace && spec.environment?.name === name);
  };
  informer.addHandler({ add: onEnvironment, update: onEnvironment, delete: onEnvironment });
  const lister: EnvironmentLister = {
    environment: (namespace, name) => ifKnown(informer, namespace, name),
    allEnvironments: () => informer.list(),
  };
  return { informer, lister };
}
