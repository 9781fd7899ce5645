import { ifThere } from '../../core/kube/errors.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import { type EnvironmentPackage, MAX_HASHES } from '../../core/resources/environment.ts';
import { type StoredTurn, turns } from '../../core/resources/kinds.ts';
import { jsonBytes } from '../../core/resources/limits.ts';
import { firstTurnName, parseStoreKey } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Store } from '../../core/store/store.ts';
import { bodyFacts } from '../caches/slim.ts';
import { isOwn } from '../observed/own-turns.ts';
import type { CachedSession } from '../observed/world.ts';
import type { BuildResult, Described } from './decide.ts';

interface Readers {
  api: Pick<KubeApi, 'get'>;
  store: Pick<Store, 'get'>;
}

/** Reads the end of the build's turn live, because the cache has no outputs. Undefined before the end. */
export async function buildResult(
  { api, store }: Readers,
  build: CachedSession,
  signal: AbortSignal,
): Promise<BuildResult | undefined> {
  const { namespace, name } = build.metadata;
  const turn: StoredTurn | undefined = await ifThere(
    api.get(turns, { namespace, name: firstTurnName(name) }, { signal }),
  );
  // The turn of an earlier build of this name may still be there.
  if (!turn || !isOwn(build, turn)) {
    const message = `the turn of session "${name}" was deleted before its result was read`;
    return { phase: 'Failed', code: 'TurnDeleted', message };
  }
  const { phase, error, metadata } = turn.status ?? {};
  if (!isTerminal(phase)) return undefined;
  // The controller creates the turn with the session's input alone; anybody may create one with that name first.
  const { input, timeout, retry } = turn.spec;
  if (bodyFacts(input).digest !== build.spec.input?.digest || timeout !== undefined || retry !== undefined) {
    const message = `turn "${turn.metadata.name}" asked for something else than its session "${name}" does`;
    return { phase: 'Failed', code: 'OtherInput', message };
  }
  if (phase === 'Succeeded') return { phase, described: await described(turn, store, signal) };
  const code = (metadata as { code?: unknown } | undefined)?.code;
  return {
    phase: phase as BuildResult['phase'],
    code: typeof code === 'string' ? code : error?.code,
    message: error?.message,
  };
}

/** Number of packages that a status names; see `environmentPackages`. */
const MAX_PACKAGES = 1024;
/** Limit of their JSON with digests. */
const MAX_PACKAGES_BYTES = 256 * 1024;

/** Reads the builder's description of the environment, cut to what a status can hold; undefined if the output is not one. */
async function described(
  { metadata, status }: StoredTurn,
  store: Readers['store'],
  signal: AbortSignal,
): Promise<Described | undefined> {
  const key = status?.outputRef === undefined ? undefined : parseStoreKey(status.outputRef);
  const output = key
    ? JSON.parse((await store.get({ namespace: metadata.namespace, kind: 'Output', ...key }, signal)).toString())
    : status?.output;
  const { python, uv, packages, bytes } = (output ?? {}) as Partial<Described>;
  if (typeof python !== 'string' || typeof uv !== 'string' || !Array.isArray(packages)) return undefined;
  const named = packages.slice(0, MAX_PACKAGES).map(packageOf);
  // Without digests a later build resolves the requirements anew; with those of a part it would install that part alone.
  const hasDigests = packages.length <= MAX_PACKAGES && jsonBytes(named) <= MAX_PACKAGES_BYTES;
  return {
    python: python.slice(0, 32),
    uv: uv.slice(0, 32),
    // The digests of very many files are left out, as they would not fit into an object.
    packages: hasDigests ? named : named.map(({ hashes: _, ...others }) => others),
    bytes: Number.isSafeInteger(bytes) && Number(bytes) > 0 ? Number(bytes) : 0,
  };
}

function packageOf(reported: unknown): EnvironmentPackage {
  const { name, version, hashes } = (reported ?? {}) as Partial<EnvironmentPackage>;
  return {
    name: String(name).slice(0, 256),
    version: String(version).slice(0, 128),
    ...(isHashes(hashes) ? { hashes } : {}),
  };
}

/** Reports whether a status can hold these digests, of at least one file. */
function isHashes(hashes: unknown): hashes is string[] {
  if (!Array.isArray(hashes) || hashes.length === 0 || hashes.length > MAX_HASHES) return false;
  return hashes.every((hash) => typeof hash === 'string' && /^sha(256|384|512):[0-9a-f]{64,128}$/.test(hash));
}
