import { isDeepStrictEqual } from 'node:util';
import { anySignal } from '../../core/abort.ts';
import { refOf } from '../../core/kube/cache.ts';
import { ifThere, isAlreadyExists, isConflict, isNotFound, isRefusal } from '../../core/kube/errors.ts';
import { environments, type Session, type StoredEnvironment, sessions } from '../../core/resources/kinds.ts';
import { API_GROUP_VERSION, LABEL_ENVIRONMENT, LABEL_MANAGED_BY, MANAGED_BY } from '../../core/resources/names.ts';
import { msUntil } from '../../core/runtime.ts';
import type { Store } from '../../core/store/store.ts';
import type { Caches } from '../caches/caches.ts';
import type { Watches } from '../caches/watches.ts';
import { ownTurns } from '../observed/own-turns.ts';
import type { CachedSession, Installation, Problem } from '../observed/world.ts';
import { type ControllerTools, QueueController } from '../runtime/queue-controller.ts';
import type { StatusWriter } from '../runtime/status-writer.ts';
import { rebuild, type WantedBuild, wantedBuild } from '../settings/builder.ts';
import { buildResult } from './build-result.ts';
import { decideEnvironment, knownResult, refusedBuild } from './decide.ts';
import { type FoundBuild, findBuild, isBuild } from './find-build.ts';
import { takenArchives, unusedBuilds } from './unused.ts';

export interface EnvironmentsOptions extends ControllerTools {
  statuses: StatusWriter;
  caches: Caches;
  store: Store;
  installation: Installation;
}

/** Queue key of the sweep of builds that nothing needs; no Environment has this name. */
const UNUSED = '';
/**
 * Time between two sweeps, and the times after which a build that no session uses is deleted with its archive: one that no
 * Environment shows, and one that could still be taken.
 */
const SWEEP_MS = 10 * 60_000;
const UNUSED_MS = { Shown: 24 * 60 * 60_000, Unknown: 60 * 60_000 };

/**
 * Keeps each Environment's status, and creates the session that builds it once a session waits for it. Everything else of
 * a build is that session's.
 */
export class Environments extends QueueController {
  readonly #options: EnvironmentsOptions;
  /** UIDs of the builds that this leader has created. A cluster may add to their spec what nobody else may. */
  readonly #made = new Set<string>();
  /** Build that nothing needs, by its session's uid → the time at which that was first seen, monotonic milliseconds. */
  readonly #unusedSince = new Map<string, number>();

  constructor(options: EnvironmentsOptions) {
    super(options, { name: 'environments', workers: 2, backoff: { baseMs: 100, maxMs: 60_000 } });
    this.#options = options;
  }

  override start(): void {
    for (const { metadata } of this.#options.caches.allEnvironments()) this.requeue(metadata.namespace, metadata.name);
    this.queue.add(UNUSED);
    super.start();
  }

  override get watches(): Watches {
    return {
      environment: (namespace, name) => this.requeue(namespace, name),
      session: (key) => this.#sessionChanged(key),
      class: (name) => {
        for (const { metadata, spec } of this.#options.caches.allEnvironments()) {
          if (spec.class === name) this.requeue(metadata.namespace, metadata.name);
        }
      },
    };
  }

  /** Reconciles the Environments that a session names, or builds. */
  #sessionChanged(key: string): void {
    const { namespace, name } = refOf(key);
    const session = this.#options.caches.session(namespace ?? '', name);
    const named = session?.spec.environment?.name;
    if (named !== undefined) this.requeue(namespace ?? '', named);
    // A deleted build is known only by its name.
    if (session && !session.spec.build) return;
    for (const { metadata, status } of this.#options.caches.allEnvironments()) {
      if (metadata.namespace === namespace && status?.build === name) this.requeue(metadata.namespace, metadata.name);
    }
  }

  protected override reconcile(key: string, builds: AbortSignal): Promise<number | undefined> {
    if (key === UNUSED) return this.#sweep(builds);
    return this.#environment(key, anySignal(builds, this.#options.closing), builds);
  }

  /** `builds`: signal for the creation and the deletion of a build, which a stop finishes. */
  async #environment(key: string, signal: AbortSignal, builds: AbortSignal): Promise<number | undefined> {
    const { caches, clock, log } = this.#options;
    const { namespace = '', name } = refOf(key);
    const environment = caches.environment(namespace, name);
    if (environment === undefined || environment === 'Missing' || environment.metadata.deletionTimestamp)
      return undefined;
    const first = await this.#wanted(environment, signal);
    const found: FoundBuild | { wanted: Problem; build?: undefined; result?: undefined } =
      'hash' in first ? await this.#find(environment, first, signal) : { wanted: first };
    const { wanted, build, result } = found;
    const now = clock.now();
    const lostItsTurn = result?.code === 'TurnDeleted';
    const decided = decideEnvironment({
      now,
      environment,
      wanted,
      build,
      result,
      needed: this.#isNeeded(environment),
      taken: build && lostItsTurn ? takenArchives(caches.allSessions()).get(build.metadata.uid) : undefined,
    });
    // Nothing is created or removed before people can see why.
    const written = await this.#write(environment, decided.status, signal);
    if (decided.act === 'CreateBuild' && 'hash' in wanted) {
      try {
        if (!(await this.#create(namespace, wanted, builds))) this.requeue(namespace, name);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        await this.#write(written, refusedBuild(written, (error as Error).message, clock.now()), signal);
        throw error;
      }
      log.info({ environment: key, build: wanted.name }, 'environment is being built');
    }
    if (decided.act === 'DeleteBuild' && build) await this.#delete(build, builds);
    return decided.wakeAt === undefined ? undefined : Math.max(0, msUntil(clock, decided.wakeAt, now));
  }

  /** Finds the build under the name that it has. The archive of a ready Environment was read from the same build. */
  #find(environment: StoredEnvironment, first: WantedBuild, signal: AbortSignal): Promise<FoundBuild> {
    const { status = {} } = environment;
    const { api, caches } = this.#options;
    const resultOf = async (build: CachedSession) => {
      const isKnown = status.phase === 'Ready' && status.archive?.sessionUID === build.metadata.uid;
      if (isKnown || !rests(build)) return undefined;
      return knownResult(status, build) ?? (await buildResult(this.#options, build, signal));
    };
    const isMade = ({ metadata }: CachedSession) => this.#made.has(metadata.uid);
    return findBuild({ api, caches, isMade, resultOf }, environment, first, signal);
  }

  /**
   * The build of the environment. Once the session of its first build is gone, it is a build that installs exactly the
   * packages of the first.
   */
  async #wanted(environment: StoredEnvironment, signal: AbortSignal): Promise<WantedBuild | Problem> {
    const { caches, installation } = this.#options;
    const { metadata, spec, status } = environment;
    const wanted = wantedBuild(environment, caches.class(spec.class), installation);
    if (!('hash' in wanted) || status?.hash !== wanted.hash) return wanted;
    const again = rebuild(wanted, status.packages);
    const { archive } = status;
    if (!again || archive?.session === again.name) return again ?? wanted;
    if (!archive) return again;
    const { namespace } = metadata;
    const cached = () => caches.session(namespace, archive.session);
    if (!cached()) await this.#look(namespace, archive.session, signal);
    const first = cached();
    if (first?.metadata.uid !== archive.sessionUID || first.metadata.deletionTimestamp) return again;
    return isBuild(first, again) ? again : wanted;
  }

  /** Has the cache show a session that the API server has, even where its event has not come yet. */
  async #look(namespace: string, name: string, signal: AbortSignal): Promise<void> {
    await ifThere(this.#options.api.get(sessions, { namespace, name }, { signal }));
  }

  /** Deletes builds that no session has used for long, by this leader's own observation. */
  async #sweep(signal: AbortSignal): Promise<number> {
    const { caches, clock, log } = this.#options;
    // An Environment may show the build where the Environments are not known.
    const unused = unusedBuilds(caches.allSessions(), caches.allEnvironments()).filter(
      ({ build }) => caches.environment(build.metadata.namespace, '') !== undefined,
    );
    const now = clock.monotonic();
    const uids = new Set(unused.map(({ build }) => build.metadata.uid));
    for (const uid of this.#unusedSince.keys()) if (!uids.has(uid)) this.#unusedSince.delete(uid);
    for (const { build, isShown } of unused) {
      const { uid, name, namespace } = build.metadata;
      const since = this.#unusedSince.get(uid) ?? now;
      this.#unusedSince.set(uid, since);
      if (now - since < UNUSED_MS[isShown ? 'Shown' : 'Unknown']) continue;
      await this.#delete(build, signal);
      log.info({ session: `${namespace}/${name}` }, 'unused environment deleted');
    }
    return SWEEP_MS;
  }

  async #delete({ metadata: { namespace, name, uid } }: CachedSession, signal: AbortSignal): Promise<void> {
    this.#options.closing.throwIfAborted();
    await this.#options.api.delete(sessions, { namespace, name }, { uid, signal }).catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    });
  }

  /** Reports whether a session is to start with this environment: a new one, or one with a turn, that has no pod. */
  #isNeeded({ metadata: { namespace, name }, spec: { class: sessionClass } }: StoredEnvironment): boolean {
    const { caches } = this.#options;
    return caches.allSessions().some((session) => {
      const { metadata, spec, status } = session;
      if (metadata.namespace !== namespace || spec.environment?.name !== name || spec.class !== sessionClass)
        return false;
      if (metadata.deletionTimestamp || spec.suspend || status?.podName || status?.phase === 'Finished') return false;
      const { live } = ownTurns(session, caches.turnsNaming(namespace, metadata.name));
      return live.length > 0 || (status?.incarnation ?? 0) === 0;
    });
  }

  /** Creates the build; false where a session has its name already, which the cache shows then. */
  async #create(namespace: string, { hash, name, spec }: WantedBuild, signal: AbortSignal): Promise<boolean> {
    const { api, closing } = this.#options;
    closing.throwIfAborted();
    const labels = { [LABEL_MANAGED_BY]: MANAGED_BY, [LABEL_ENVIRONMENT]: hash.slice(0, 63) };
    const session = {
      apiVersion: API_GROUP_VERSION,
      kind: 'Session',
      metadata: { name, namespace, labels },
      spec,
    } as unknown as Session;
    try {
      const made = await api.create(sessions, session, { signal });
      this.#made.add(made.metadata.uid);
      return true;
    } catch (error) {
      // An environment with the same hash has created it, this one has a moment ago, or it is something else.
      if (!isAlreadyExists(error)) throw error;
      await this.#look(namespace, name, signal);
      return false;
    }
  }

  /** Writes the status where it differs; returns the object as it is then. */
  async #write(
    environment: StoredEnvironment,
    status: NonNullable<StoredEnvironment['status']>,
    signal: AbortSignal,
  ): Promise<StoredEnvironment> {
    if (isDeepStrictEqual(environment.status ?? {}, status)) return environment;
    const { statuses, notify } = this.#options;
    const written = await statuses.write(environments, environment.metadata, status, signal);
    const ready = status.conditions?.find(({ type }) => type === 'Ready');
    if (!ready || status.phase === environment.status?.phase || status.phase === 'Pending') return written;
    const { reason, message } = ready;
    notify(written, { type: status.phase === 'Failed' ? 'Warning' : 'Normal', reason, message }, 'Environment');
    return written;
  }
}

/** Reports whether the build has stopped. A build whose turn was deleted before its end stays unfinished. */
function rests({ spec, status }: CachedSession): boolean {
  if (status?.phase === 'Finished') return true;
  return status?.phase === 'Suspended' && !spec.suspend && (status.incarnation ?? 0) > 0;
}
