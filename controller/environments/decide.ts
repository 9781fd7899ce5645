import { defined } from '../../core/defined.ts';
import type { EnvironmentArchive, EnvironmentPackage, EnvironmentStatus } from '../../core/resources/environment.ts';
import type { StoredEnvironment } from '../../core/resources/kinds.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import type { CachedSession, Problem } from '../observed/world.ts';
import type { WantedBuild } from '../settings/builder.ts';
import { withCondition } from '../status/conditions.ts';
import { withEnvironmentReason } from '../status/reason.ts';

/** Facts of a build's ended turn for the environment. */
export interface BuildResult {
  phase: 'Succeeded' | 'Failed' | 'Cancelled' | 'TimedOut';
  /** Description of the environment, from the builder. */
  described?: Described | undefined;
  /** Code of the builder, else of the turn. */
  code?: string | undefined;
  message?: string | undefined;
}

/** Facts of a built environment, as `runner/environment/build.py` reports them. */
export interface Described {
  python: string;
  uv: string;
  packages: EnvironmentPackage[];
  bytes: number;
}

/** The input of every decision about one Environment. */
export interface EnvironmentWorld {
  now: number;
  environment: StoredEnvironment;
  wanted: WantedBuild | Problem;
  build: CachedSession | undefined;
  /** Result of the build's turn, once it has ended. */
  result: BuildResult | undefined;
  /** A session waits for the environment. */
  needed: boolean;
  /** Archive of a build that has lost its turn, if a session has it. */
  taken: EnvironmentArchive | undefined;
}

export interface EnvironmentDecision {
  status: EnvironmentStatus;
  act?: 'CreateBuild' | 'DeleteBuild';
  /** Time of the next reconcile, milliseconds since the epoch. */
  wakeAt?: number;
}

/** Time after the deletion of a build within which the watch usually shows it, milliseconds. Until then it is only deleted again. */
const DELETED_MS = 1_000;

/** Codes of a failed build after which another one may succeed without anybody's doing. */
const PASSING: ReadonlySet<string> = new Set([
  'IndexUnreachable',
  // The store was out of reach for a time. A full one is `StoreFull`.
  'StateNotStored',
  'TurnDeleted',
  'PodLost',
  'Evicted',
  'ImageUnavailable',
  'Unschedulable',
]);
/** Codes of a failed build that another one would end with too. */
const FINAL: ReadonlySet<string> = new Set([
  'Unsolvable',
  'HashMismatch',
  'PythonMissing',
  'CommandNotFound',
  'RequirementInvalid',
  'CheckFailed',
  'EnvironmentTooLarge',
  'StateTooLarge',
]);
/** Builds of an environment before it counts as failed although another one may succeed, and the time after that. */
const MAX_ATTEMPTS = 4;
const BACKOFF_MS = 10_000;
const RETRY_FAILED_MS = 10 * 60_000;
/** Time until the next build after a failure that somebody has to mend, if a session needs it then. */
const RETRY_MENDED_MS = 30_000;

/** Reasons by the code of a build; every other code is `BuildFailed`. */
const REASONS: Readonly<Record<string, Reason>> = {
  Unsolvable: 'Unsolvable',
  IndexUnreachable: 'IndexUnreachable',
  IndexRefused: 'IndexRefused',
  HashMismatch: 'HashMismatch',
  PythonMissing: 'PythonMissing',
  CommandNotFound: 'PythonMissing',
  UvMissing: 'UvMissing',
  RequirementInvalid: 'RequirementInvalid',
  CheckFailed: 'CheckFailed',
  EnvironmentTooLarge: 'EnvironmentTooLarge',
  StateTooLarge: 'EnvironmentTooLarge',
  StoreFull: 'StoreFull',
};

/** Decides what an Environment shows, and whether its build is created or removed. */
export function decideEnvironment(world: EnvironmentWorld): EnvironmentDecision {
  const { environment, wanted, build, now } = world;
  if ('reason' in wanted) {
    // The class may still be created, for example when all objects are applied together.
    const phase = wanted.reason === 'ClassNotFound' ? 'Pending' : 'Failed';
    return { status: shown(world, phase, wanted.reason, wanted.message) };
  }
  const { status: before = {} } = environment;
  const same = before.hash === wanted.hash;
  if (build && !build.metadata.deletionTimestamp) {
    if (world.result?.phase === 'Succeeded') return ready(world, build, world.result);
    if (world.result?.code === 'TurnDeleted' && world.taken) return stillTaken(world, world.taken);
    if (world.result && isFormer(world, build)) {
      return { status: shown(world, 'Pending', 'NotBuilt', 'No session has needed it yet.'), act: 'DeleteBuild' };
    }
    if (world.result) return failed(world, world.result);
    if (build.status?.phase === 'Finished') return { status: { ...before } };
    return { status: shown(world, 'Building', 'Building', `Session "${wanted.name}" builds it.`) };
  }
  if (same && before.retryAt !== undefined) {
    if (!world.needed) return { status: { ...before } };
    const again = Date.parse(before.retryAt);
    if (now < again) return { status: { ...before }, wakeAt: again };
  }
  if (!world.needed) return { status: shown(world, 'Pending', 'NotBuilt', 'No session has needed it yet.') };
  // A refusal is shown until the session can be created.
  const isRefused = same && before.conditions?.some(({ reason }) => reason === 'BuildRefused');
  const status = shown(world, 'Building', 'Building', `Session "${wanted.name}" is created to build it.`);
  return { status: isRefused ? { ...before } : status, act: 'CreateBuild' };
}

function ready(world: EnvironmentWorld, build: CachedSession, { described }: BuildResult): EnvironmentDecision {
  const { state } = build.status ?? {};
  if (!described || !state) {
    return {
      status: shown(world, 'Failed', 'BuildFailed', 'The build has told nothing of what it built; delete its session.'),
    };
  }
  const archive: EnvironmentArchive = { ...state, session: build.metadata.name, sessionUID: build.metadata.uid };
  const { python, uv, packages, bytes } = described;
  const count = packages.length === 1 ? '1 package' : `${packages.length} packages`;
  const status = shown(world, 'Ready', 'Ready', `${count} for Python ${python}.`);
  delete status.attempts;
  return { status: { ...status, archive, pythonVersion: python, uvVersion: uv, packages, bytes } };
}

/**
 * The turn with the report of the build is gone, but sessions have the archive: deleting the build would delete it, and a turn
 * of theirs would fail if the Environment failed.
 */
function stillTaken(world: EnvironmentWorld, archive: EnvironmentArchive): EnvironmentDecision {
  const message = `Sessions have its archive. Its packages are not known, as the turn of session "${archive.session}" was deleted; delete that session, and it is built again.`;
  return { status: { ...shown(world, 'Ready', 'Ready', message), archive } };
}

/** Reports whether the build failed before the Environment was created, which therefore gets another one. */
function isFormer({ environment }: EnvironmentWorld, { metadata }: CachedSession): boolean {
  const createdAt = Date.parse(environment.metadata.creationTimestamp);
  return environment.status?.hash === undefined && Date.parse(metadata.creationTimestamp) < createdAt;
}

/** A build that may succeed later is removed, and created again after a time. */
function failed(
  world: EnvironmentWorld,
  { code = 'BuildFailed', message = 'the build has failed' }: BuildResult,
): EnvironmentDecision {
  const reason = REASONS[code] ?? (PASSING.has(code) ? (code as Reason) : 'BuildFailed');
  const text = reason === 'BuildFailed' && code !== 'BuildFailed' ? `${code}: ${message}` : message;
  if (FINAL.has(code)) return { status: shown(world, 'Failed', reason, text) };
  // This failure is counted already, and its build is about to be gone.
  const before = world.environment.status;
  if (before?.retryAt !== undefined && 'hash' in world.wanted && before.hash === world.wanted.hash) {
    const wakeAt = Math.max(Date.parse(before.retryAt), world.now + DELETED_MS);
    return { status: { ...before }, act: 'DeleteBuild', wakeAt };
  }
  const at = (ms: number) => new Date(world.now + ms).toISOString();
  if (!PASSING.has(code)) {
    const status = shown(world, 'Failed', reason, `${text} (it is built again when a session needs it)`);
    return { status: { ...status, retryAt: at(RETRY_MENDED_MS) }, act: 'DeleteBuild' };
  }
  const attempts = (before?.attempts ?? 0) + 1;
  const [phase, again] =
    attempts < MAX_ATTEMPTS
      ? (['Pending', 'it is built again'] as const)
      : (['Failed', 'it is built again later, when a session needs it'] as const);
  const status = shown(world, phase, reason, `${text} (attempt ${attempts}; ${again})`);
  return { status: { ...status, attempts, retryAt: at(backoffMs(attempts)) }, act: 'DeleteBuild' };
}

const backoffMs = (attempts: number) => (attempts < MAX_ATTEMPTS ? BACKOFF_MS * 2 ** (attempts - 1) : RETRY_FAILED_MS);

/** Status of an Environment whose build may not be created; `message` is the API server's. */
export function refusedBuild({ metadata, status }: StoredEnvironment, message: string, now: number): EnvironmentStatus {
  const text = `The session that builds it was refused: ${message}`;
  const isReady = { status: 'False', reason: 'BuildRefused', message: text } as const;
  const conditions = withCondition(status?.conditions, 'Ready', isReady, now, metadata.generation);
  return withEnvironmentReason({ ...status, phase: 'Pending', conditions });
}

/**
 * Facts of the last build, which are kept while it is not known what to build, for example because the class is away for
 * a moment. The spec cannot change, so the hash shows afterwards whether they still hold.
 */
function lastBuilt(before: EnvironmentStatus): Partial<EnvironmentStatus> {
  const { hash, build, archive, pythonVersion, uvVersion, packages, bytes } = before;
  const facts = { hash, build, archive, pythonVersion, uvVersion, packages, bytes };
  return Object.fromEntries(Object.entries(facts).filter(([, fact]) => fact !== undefined));
}

/** Result of the build as the status still has it, where the archive of the status is the build's. */
export function knownResult(
  { archive, pythonVersion, uvVersion, packages, bytes }: EnvironmentStatus,
  build: CachedSession,
): BuildResult | undefined {
  if (archive?.sessionUID !== build.metadata.uid) return undefined;
  if (pythonVersion === undefined || uvVersion === undefined || !packages || bytes === undefined) return undefined;
  return { phase: 'Succeeded', described: { python: pythonVersion, uv: uvVersion, packages, bytes } };
}

function shown(
  { environment: { metadata, status: before = {} }, wanted, now }: EnvironmentWorld,
  phase: NonNullable<EnvironmentStatus['phase']>,
  reason: Reason,
  message: string,
): EnvironmentStatus {
  const isReady = { status: phase === 'Ready' ? 'True' : 'False', reason, message } as const;
  const built = 'hash' in wanted ? { hash: wanted.hash, build: wanted.name } : lastBuilt(before);
  const { conditions, attempts, packages } = before;
  const isSame = before.hash === ('hash' in wanted ? wanted.hash : '');
  return withEnvironmentReason({
    phase,
    conditions: withCondition(conditions, 'Ready', isReady, now, metadata.generation),
    ...defined({ observedGeneration: metadata.generation }),
    ...built,
    // The packages are kept, because another build installs exactly these.
    ...(isSame && packages ? { packages } : {}),
    ...(isSame && attempts !== undefined ? { attempts } : {}),
  });
}
