import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { CachedSession } from './world.ts';

/** Names of the ConfigMaps that hold files of the session's agent. */
export function namedConfigMaps(
  { spec }: Pick<CachedSession, 'spec'>,
  sessionClass: StoredSessionClass | undefined,
): Set<string> {
  const sources = [...(sessionClass?.spec.agent?.files ?? []), ...(spec.agent?.files ?? [])];
  return new Set(sources.flatMap(({ configMap }) => (configMap === undefined ? [] : [configMap])));
}
