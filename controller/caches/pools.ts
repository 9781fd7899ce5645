import { Informer } from '../../core/kube/informer.ts';
import { type SessionPool, type StoredSessionPool, sessionpools } from '../../core/resources/kinds.ts';
import { type CacheTools, ifKnown } from './tools.ts';

export interface PoolLister {
  /** Pools of all namespaces; empty while SessionPools were not read, or may not be read. */
  allPools(): StoredSessionPool[];
  /**
   * Returns a pool, or that none exists, as none does where pools are turned off; undefined while SessionPools were not read,
   * or may not be read.
   */
  pool(namespace: string, name: string): StoredSessionPool | 'Missing' | undefined;
}

/** There is no pool where pools are turned off. */
export const NO_POOLS: PoolLister = { allPools: () => [], pool: () => 'Missing' };

/** The cache of SessionPools. */
export function poolCache(tools: CacheTools) {
  const informer = new Informer<SessionPool>({
    ...tools,
    onKnown: () => tools.watchers.notify('poolsKnown'),
    resource: sessionpools,
  });
  const onPool = ({ metadata: { namespace, name } }: StoredSessionPool) =>
    tools.watchers.notify('pool', namespace, name);
  informer.addHandler({ add: onPool, update: onPool, delete: onPool });
  const lister: PoolLister = {
    allPools: () => informer.list(),
    pool: (namespace, name) => ifKnown(informer, namespace, name),
  };
  return { informer, lister };
}
