import type { Bind } from '../../core/frames/messages.ts';
import { stateKey } from '../../core/frames/seal.ts';
import type { ConfigMap } from '../../core/kube/builtin.ts';
import { ifThere } from '../../core/kube/errors.ts';
import { configMaps } from '../../core/kube/resources.ts';
import type { AgentFile } from '../../core/resources/agent.ts';
import type { EnvironmentArchive } from '../../core/resources/environment.ts';
import { sessions } from '../../core/resources/kinds.ts';
import { LABEL_AGENT_FILES } from '../../core/resources/names.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import { StoreMissingError } from '../../core/store/store.ts';
import { configMapsIn, filesDigest } from '../observed/agent-files.ts';
import { learn } from '../observed/memory.ts';
import type { Problem } from '../observed/world.ts';
import { noConfigMap } from '../settings/agent-files.ts';
import { AgentFilesError, fileArchives } from '../settings/file-archives.ts';
import { timeoutMs } from '../settings/timeouts.ts';
import { keyMissing } from './bind-problem.ts';
import { boundedWait } from './bounded-wait.ts';
import type { ReconcileContext } from './context.ts';

/** What a runner gets beside its binding. */
export interface BindContents {
  state: { digest: string; keyId: string; sealed: Buffer } | undefined;
  files: readonly Buffer[];
  environment: { bound: NonNullable<Bind['environment']>; sealed: Buffer } | undefined;
}

/**
 * Reads the committed state, the agent's files and the environment; state and environment stay sealed. Undefined where something
 * cannot be read: the memory has the reason. Rejects where another attempt may succeed.
 */
export async function readContents(
  context: ReconcileContext,
  sources: readonly AgentFile[],
  podUID: string,
): Promise<BindContents | undefined> {
  const { metadata, status } = context.world.session;
  const owner = { sessionUID: metadata.uid, reason: 'StateUnavailable', what: 'The stored state' } as const;
  const state = status?.state && {
    digest: status.state.digest,
    keyId: status.state.keyId,
    sealed: await load(context, status.state, owner),
  };
  const files = await agentFiles(context, sources, podUID);
  if (!files) return undefined;
  const environment = await environmentArchive(context, podUID);
  return environment === 'Unavailable' ? undefined : { state, files, environment };
}

/**
 * The archives of the agent's files, of ConfigMaps as the status records them. Undefined where they cannot be read: the memory
 * has the reason.
 */
async function agentFiles(
  { effects, world, memory, signal }: ReconcileContext,
  sources: readonly AgentFile[],
  podUID: string,
): Promise<Buffer[] | undefined> {
  const { metadata, status } = world.session;
  const { namespace } = metadata;
  const recorded = new Map(status?.agentFiles?.map(({ configMap, digest }) => [configMap, digest]));
  const found = new Map<string, ConfigMap>();
  for (const name of configMapsIn(sources)) {
    const configMap = await ifThere(effects.api.get(configMaps, { namespace, name }, { signal }));
    const problem = lostFiles(name, configMap, recorded.get(name));
    if (problem) {
      learn(memory, { fact: 'ContentsLost', podUID, problem });
      // The watch may be behind, and the next incarnation would take the same again.
      if (!configMap) await effects.caches.relistAgentFiles(signal);
      return undefined;
    }
    if (configMap) found.set(name, configMap);
  }
  try {
    return await fileArchives(sources, found);
  } catch (error) {
    if (!(error instanceof AgentFilesError)) throw error;
    learn(memory, { fact: 'StartProblem', problem: { reason: 'AgentFilesMissing', message: error.message } });
    return undefined;
  }
}

/** Problem that keeps the runner from getting the files of a ConfigMap. The status records this digest. */
function lostFiles(name: string, configMap: ConfigMap | undefined, recorded: string | undefined): Problem | undefined {
  if (configMap?.metadata.labels?.[LABEL_AGENT_FILES] !== 'true')
    return { reason: 'AgentFilesMissing', message: noConfigMap(name) };
  // Every leader gives the files of an incarnation to its runner, so all of them give the same.
  if (filesDigest(configMap) === recorded) return undefined;
  return {
    reason: 'AgentFilesChanged',
    message: `ConfigMap "${name}" of agent.files was changed before the pod had its files; the next incarnation takes them as they are then.`,
  };
}

/**
 * The archive of the environment that the status records, as it was sealed by the session that built it. `Unavailable`: the
 * memory has the reason.
 */
async function environmentArchive(
  context: ReconcileContext,
  podUID: string,
): Promise<BindContents['environment'] | 'Unavailable'> {
  const { effects, world, memory } = context;
  const { environment } = world.session.status ?? {};
  if (!environment) return undefined;
  const { sessionUID, keyId, digest } = environment.archive;
  const master = effects.keys.byId.get(keyId);
  if (!master) {
    learn(memory, { fact: 'StartProblem', problem: keyMissing('The environment', keyId) });
    return 'Unavailable';
  }
  const what = `The archive of environment "${environment.name}"`;
  const { incarnation, seq } = environment.archive;
  const read = () => load(context, environment.archive, { sessionUID, reason: 'EnvironmentUnavailable', what });
  const sealed = await effects.archives
    .get(`${sessionUID}/${incarnation}/${seq}/${digest}`, read)
    .catch(async (error: unknown) => {
      if (!(error instanceof StoreMissingError) || (await isBuildThere(context, environment.archive))) throw error;
      return undefined;
    });
  if (!sealed) {
    const message = `${what} is gone, as session "${environment.archive.session}", which built it, was deleted.`;
    learn(memory, { fact: 'EnvironmentLost', build: sessionUID });
    learn(memory, { fact: 'ContentsLost', podUID, problem: { reason: 'EnvironmentUnavailable', message } });
    return 'Unavailable';
  }
  const key = stateKey(master, sessionUID).toString('base64');
  return { bound: { digest, session: sessionUID, keyId, key }, sealed };
}

/** Asks the API server whether the session that built an environment still exists. Its archive is deleted with it. */
async function isBuildThere(
  { effects, world, signal }: ReconcileContext,
  { session, sessionUID }: EnvironmentArchive,
): Promise<boolean> {
  const { namespace } = world.session.metadata;
  const found = await ifThere(effects.api.get(sessions, { namespace, name: session }, { signal }));
  return found?.metadata.uid === sessionUID;
}

/** Loads a sealed state. A session does not start without it: the problem is shown while the load is retried. */
async function load(
  { effects, world, memory, signal }: ReconcileContext,
  state: StateRef,
  { sessionUID, reason, what }: { sessionUID: string; reason: Reason; what: string },
): Promise<Buffer> {
  if (state.inline !== undefined) return Buffer.from(state.inline, 'base64');
  const { namespace } = world.session.metadata;
  const { incarnation, seq } = state;
  try {
    const key = { sessionUID, namespace, incarnation, seq, kind: 'State' as const };
    const deadline = effects.clock.now() + timeoutMs('persist', world.session.spec, world.class);
    const ahead = effects.statePrefetch.take(sessionUID, state);
    return await boundedWait(
      { effects, deadline, signal },
      (waiting) => ahead ?? effects.store.get(key, waiting, state.bytes),
    );
  } catch (error) {
    const message = `${what} cannot be read: ${(error as Error).message}`;
    if (!signal.aborted) learn(memory, { fact: 'StartProblem', problem: { reason, message } });
    throw error;
  }
}
