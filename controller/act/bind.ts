import { defined } from '../../core/defined.ts';
import { takes } from '../../core/frames/catalogue.ts';
import { type Bind, understand } from '../../core/frames/messages.ts';
import { stateKey } from '../../core/frames/seal.ts';
import type { ConfigMap } from '../../core/kube/builtin.ts';
import { isNotFound } from '../../core/kube/errors.ts';
import { configMaps } from '../../core/kube/resources.ts';
import type { AgentFile } from '../../core/resources/agent.ts';
import type { EnvironmentArchive } from '../../core/resources/environment.ts';
import { sessions } from '../../core/resources/kinds.ts';
import { LABEL_AGENT_FILES } from '../../core/resources/names.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { StoreMissingError } from '../../core/store/store.ts';
import { configMapsIn, filesDigest } from '../observed/agent-files.ts';
import { learn } from '../observed/memory.ts';
import type { Problem, World } from '../observed/world.ts';
import { noConfigMap } from '../settings/agent-files.ts';
import type { Effective } from '../settings/effective.ts';
import { AgentFilesError, fileArchives } from '../settings/file-archives.ts';
import type { Kept } from '../settings/persistence.ts';
import { timeoutMs } from '../settings/timeouts.ts';
import { boundedWait } from './bounded-wait.ts';
import type { ReconcileContext } from './context.ts';
import { keepsWorkspace } from './workspace.ts';

/** Note for the agent of a later incarnation about what it finds again. */
function restoreNote({ state }: Kept, workspaceReset: boolean): string {
  const found = [...(state ? ['the state directory'] : []), ...(workspaceReset ? [] : ['the working directory'])];
  if (found.length === 0) return 'This session goes on in a new pod: nothing of the former one was kept.';
  const are = found.length === 1 ? 'is as the last turn left it' : 'are as the last turn left them';
  return `This session goes on in a new pod: ${found.join(' and ')} ${are}, everything else was reset.`;
}

/** Binds an unbound runner to the session and gives it the committed state, sealed as it is. */
export async function bindRunner(context: ReconcileContext, settings: Effective): Promise<void> {
  const { effects, world, memory, key } = context;
  const { session, installation } = world;
  const link = effects.links.get(world.link?.podUID);
  if (!link) return;
  const protocol = world.link?.protocol ?? 0;
  // A runner that an earlier leader has bound still gets what it lacks; `suspend` gives it up.
  if (world.link?.phase !== 'Bound' && !understand(protocol, installation.protocol)) {
    const message = `The runner in image "${settings.image}" speaks protocol ${protocol}, the controller ${installation.protocol}; use the image of this release.`;
    learn(memory, { fact: 'StartProblem', problem: { reason: 'ProtocolUnsupported', message } });
    return;
  }
  const needed = [
    { control: 'files', isNeeded: settings.files.length > 0, what: 'agent.files' },
    { control: 'environment', isNeeded: session.status?.environment || settings.builds, what: 'environments' },
  ] as const;
  const lacking = needed.find(({ control, isNeeded }) => isNeeded && !takes(protocol, control));
  if (lacking) {
    const message = `The runner in image "${settings.image}" speaks protocol ${protocol}, which has no ${lacking.what}; use the image of this release.`;
    learn(memory, { fact: 'StartProblem', problem: { reason: 'ProtocolUnsupported', message } });
    return;
  }
  const state = session.status?.state;
  const keyId = state?.keyId ?? effects.keys.current.id;
  const master = effects.keys.byId.get(keyId);
  if (!master) {
    const message = `The session's state was sealed with master key "${keyId}", which the controller does not have; put it back into the Secret and restart the controller.`;
    learn(memory, { fact: 'StartProblem', problem: { reason: 'StateKeyUnknown', message } });
    return;
  }
  learn(memory, { fact: 'StartProblem', problem: undefined });
  const { kept } = settings;
  const incarnation = session.status?.incarnation ?? 0;
  const workspaceReset = incarnation > 1 && !(kept.workspace && (await keepsWorkspace(context)));
  const sealed = state
    ? await load(context, state, {
        sessionUID: session.metadata.uid,
        reason: 'StateUnavailable',
        what: 'The stored state',
      })
    : undefined;
  const files = await agentFiles(context, settings.files, link.view.podUID);
  if (!files) return;
  const environment = await environmentArchive(context, link.view.podUID);
  if (environment === 'Unavailable') return;
  link.bind(
    {
      protocol: installation.protocol,
      session: {
        name: session.metadata.name,
        namespace: session.metadata.namespace,
        uid: session.metadata.uid,
      },
      incarnation,
      state: { keyId, key: stateKey(master, session.metadata.uid).toString('base64') },
      agent: settings.agent,
      limits: settings.limits,
      artifacts: settings.artifacts,
      ...(settings.redact.length > 0 ? { redact: settings.redact } : {}),
      ...defined({ heuristics: settings.heuristics }),
      ...(state ? { restores: { digest: state.digest, incarnation: state.incarnation, seq: state.seq } } : {}),
      ...(kept.state && kept.maxStateBytes === undefined && kept.maxPackedBytes === undefined
        ? {}
        : {
            persistence: {
              state: kept.state,
              ...defined({ maxStateBytes: kept.maxStateBytes, maxPackedBytes: kept.maxPackedBytes }),
            },
          }),
      ...(environment ? { environment: environment.bound } : {}),
      ...(kept.workspace ? { workspace: { mountPath: kept.workspace.mountPath } } : {}),
      ...(files.length > 0 ? { files: { due: true as const } } : {}),
      ...(incarnation > 1 && (state || ranBefore(world))
        ? { restored: { workspaceReset, note: restoreNote(kept, workspaceReset) } }
        : {}),
    },
    {
      state: state && sealed ? { digest: state.digest, keyId: state.keyId, sealed } : undefined,
      files,
      environment: environment && { digest: environment.bound.digest, sealed: environment.sealed },
    },
  );
  effects.log.info(
    { session: key, incarnation: session.status?.incarnation, restored: Boolean(state) },
    'runner bound',
  );
}

/**
 * Reports whether an earlier incarnation was given a turn, in the status of the session or by a turn that it does not count
 * yet. A pod that never became one's own leaves nothing to be restored from.
 */
function ranBefore({ session, turns }: World): boolean {
  const { lastTurn, incarnation = 0 } = session.status ?? {};
  const isEarlier = (of = incarnation) => of < incarnation;
  return (
    lastTurn !== undefined ||
    turns.some(({ status: { phase, attempt = 0, approval, podUID, incarnation: ranIn } }) => {
      if (isEarlier(approval?.incarnation) || attempt > (phase === 'Queued' ? 0 : 1)) return true;
      return isTerminal(phase) && podUID !== undefined && isEarlier(ranIn);
    })
  );
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
    const configMap = await effects.api.get(configMaps, { namespace, name }, { signal }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
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
): Promise<{ bound: NonNullable<Bind['environment']>; sealed: Buffer } | 'Unavailable' | undefined> {
  const { effects, world, memory } = context;
  const { environment } = world.session.status ?? {};
  if (!environment) return undefined;
  const { sessionUID, keyId, digest } = environment.archive;
  const master = effects.keys.byId.get(keyId);
  if (!master) {
    const message = `The environment was sealed with master key "${keyId}", which the controller does not have; put it back into the Secret and restart the controller.`;
    learn(memory, { fact: 'StartProblem', problem: { reason: 'StateKeyUnknown', message } });
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
  const found = await effects.api.get(sessions, { namespace, name: session }, { signal }).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
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
