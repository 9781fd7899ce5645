import type { StoredEnvironment } from '../../core/resources/kinds.ts';
import type { CachedSession } from '../world/world.ts';

/**
 * Sessions that have built an environment which nothing needs any more: no Environment shows it, and no session has it. Their
 * states are the archives.
 */
export function unusedBuilds(
  sessions: readonly CachedSession[],
  environments: readonly StoredEnvironment[],
): CachedSession[] {
  const shown = new Set(environments.map(({ metadata, status }) => `${metadata.namespace}/${status?.build}`));
  const taken = new Set(sessions.map(({ status }) => status?.environment?.archive.sessionUID));
  return sessions.filter(
    ({ metadata, spec }) =>
      spec.build !== undefined && !shown.has(`${metadata.namespace}/${metadata.name}`) && !taken.has(metadata.uid),
  );
}
