import { ifThere } from '../../core/kube/errors.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import { type StoredEnvironment, sessionOwner, turns } from '../../core/resources/kinds.ts';
import { firstTurnName } from '../../core/resources/names.ts';
import type { Caches } from '../caches/caches.ts';
import { bodyFacts } from '../caches/slim.ts';
import type { CachedSession } from '../observed/world.ts';
import { besides, type WantedBuild } from '../settings/builder.ts';
import type { BuildResult } from './decide.ts';

/** A build under the name that it has, or will have. */
export interface FoundBuild {
  wanted: WantedBuild;
  build?: CachedSession;
  /** Result of the build's turn, once it has ended. */
  result?: BuildResult | undefined;
}

interface Readers {
  api: Pick<KubeApi, 'get'>;
  caches: Pick<Caches, 'session'>;
  /** Reports whether this leader has created the session. */
  isMade: (build: CachedSession) => boolean;
  /** Reads the result of a build that has stopped. */
  resultOf: (build: CachedSession) => Promise<BuildResult | undefined>;
}

/**
 * Finds the build of an Environment: the one that its status names, or else the first name that no other session has. Anybody may
 * take a name that is known before, of the session and of its turn; the next name depends on the UID of what has taken it.
 */
export async function findBuild(
  readers: Readers,
  { metadata: { namespace }, status }: StoredEnvironment,
  first: WantedBuild,
  signal: AbortSignal,
): Promise<FoundBuild> {
  const { caches, isMade, resultOf } = readers;
  const at = async (wanted: WantedBuild, build: CachedSession): Promise<FoundBuild | undefined> => {
    const isOurs = isMade(build) || status?.archive?.sessionUID === build.metadata.uid;
    if (!isBuild(build, wanted) || (!isOurs && hasMore(build))) return undefined;
    if (await isTurnTaken(readers, build, signal)) return undefined;
    const result = await resultOf(build);
    return result?.code === 'OtherInput' ? undefined : { wanted, build, result };
  };
  if (status?.hash === first.hash && status.build !== undefined) {
    const build = caches.session(namespace, status.build);
    const found = build && (await at({ ...first, name: status.build }, build));
    if (found) return found;
  }
  for (let wanted = first; ; ) {
    const build = caches.session(namespace, wanted.name);
    const found = build ? await at(wanted, build) : { wanted };
    if (found) return found;
    wanted = besides(wanted, (build as CachedSession).metadata.uid);
  }
}

/** Reports whether the session builds this environment: its name alone says nothing, as anybody may take it. */
export function isBuild({ spec }: CachedSession, { spec: wanted }: WantedBuild): boolean {
  return (
    spec.build === wanted.build &&
    spec.class === wanted.class &&
    spec.image === wanted.image &&
    spec.turns === wanted.turns &&
    spec.input?.digest === bodyFacts(wanted.input).digest
  );
}

/** Reports whether a spec has more fields than Berth gives a build: a hold, a time limit or a group can keep it from its end. */
function hasMore({ spec }: CachedSession): boolean {
  const { class: _, image: __, turns: ___, build: ____, input: _____, suspend, ...more } = spec;
  return suspend === true || Object.values(more).some((value) => value !== undefined);
}

/**
 * Reports whether a turn of another session, or of none, has the name of the build's turn. One whose session is gone is about to be
 * deleted.
 */
async function isTurnTaken({ api, caches }: Readers, build: CachedSession, signal: AbortSignal): Promise<boolean> {
  const { metadata, status } = build;
  if (!status?.conditions?.some(({ type, reason }) => type === 'Ready' && reason === 'TurnExists')) return false;
  const { namespace } = metadata;
  const turn = await ifThere(api.get(turns, { namespace, name: firstTurnName(metadata.name) }, { signal }));
  if (!turn) return false;
  const owner = sessionOwner(turn.metadata);
  if (!owner) return true;
  return owner.uid !== metadata.uid && caches.session(namespace, owner.name)?.metadata.uid === owner.uid;
}
