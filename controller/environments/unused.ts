import type { EnvironmentArchive } from '../../core/resources/environment.ts';
import type { StoredEnvironment } from '../../core/resources/kinds.ts';
import type { CachedSession } from '../observed/world.ts';

/** Session whose state is an archive that no session has. */
export interface UnusedBuild {
  build: CachedSession;
  /** An Environment shows it: the next session of the Environment would take it. */
  isShown: boolean;
}

/** Archives that sessions have, by the uid of the build. Finished sessions start no more, so they have none. */
export function takenArchives(sessions: readonly CachedSession[]): ReadonlyMap<string, EnvironmentArchive> {
  const archives = lasting(sessions).flatMap(({ status }) => status?.environment?.archive ?? []);
  return new Map(archives.map((archive) => [archive.sessionUID, archive]));
}

const lasting = (sessions: readonly CachedSession[]) => sessions.filter(({ status }) => status?.phase !== 'Finished');

/** Sessions that have built an environment of no session, not even of one that waits. */
export function unusedBuilds(
  sessions: readonly CachedSession[],
  environments: readonly StoredEnvironment[],
): UnusedBuild[] {
  const taken = takenArchives(sessions);
  const named = new Set(
    lasting(sessions).map(({ metadata, spec }) => `${metadata.namespace}/${spec.environment?.name}`),
  );
  const shown = new Map<string, boolean>();
  for (const { metadata, status } of environments) {
    const build = `${metadata.namespace}/${status?.build}`;
    shown.set(build, shown.get(build) || named.has(`${metadata.namespace}/${metadata.name}`));
  }
  return sessions
    .filter(({ metadata, spec }) => {
      const isNamed = shown.get(`${metadata.namespace}/${metadata.name}`);
      return spec.build !== undefined && !isNamed && !taken.has(metadata.uid);
    })
    .map((build) => ({ build, isShown: shown.has(`${build.metadata.namespace}/${build.metadata.name}`) }));
}
