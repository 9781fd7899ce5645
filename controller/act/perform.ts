import {
  ApiError,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isInvalid,
  isNotFound,
  TransportError,
} from '../../core/kube/errors.ts';
import { pods } from '../../core/kube/resources.ts';
import { ownedBy, type StoredSession, type StoredTurn, sessions, turns } from '../../core/resources/kinds.ts';
import { API_GROUP_VERSION, firstTurnName, podName } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn.ts';
import type { Action } from '../decide/draft.ts';
import { attachability } from '../link/links.ts';
import { sessionPod } from '../pod.ts';
import { acknowledgeStray } from './acknowledge.ts';
import { bindRunner } from './bind.ts';
import { commit } from './commit.ts';
import type { Pass } from './context.ts';
import { ownIncarnation } from './own.ts';
import { abortSuspension, verifySuspension } from './suspension.ts';
import { writeStatus } from './write-status.ts';

/** Of reading the log of an ended container, before its turn counts as lost. */
const LOG_ATTEMPTS = 5;

/** Ends of turns that are nobody's wish and no agent's doing. */
const NOTEWORTHY: ReadonlySet<string> = new Set(['PodLost', 'StartFailed', 'TurnTimedOut']);

/**
 * Carries out one action. Rejects with a retryable error when it could not; what a person must know becomes a problem in
 * the session's memory instead, which the next decision shows.
 */
export async function perform(action: Action, pass: Pass): Promise<void> {
  const { effects, world, memory, signal } = pass;
  const { api, caches, links, log } = effects;
  const { session } = world;
  const namespace = session.metadata.namespace as string;
  const link = links.get(world.link?.podUID);

  switch (action.do) {
    case 'AdoptTurn': {
      const { name, uid, resourceVersion } = action.turn.metadata;
      const owner = ownedBy(session as unknown as StoredSession);
      const patch = { metadata: { uid, resourceVersion, ownerReferences: [owner] } };
      caches.sawTurn(await api.patch(turns, { namespace, name }, patch, { type: 'merge', signal }));
      return;
    }
    case 'CreateFirstTurn':
      return createFirstTurn(pass);
    case 'WriteTurn': {
      const written = await writeStatus(api, turns, action.turn.metadata, action.status, signal);
      if (action.status.phase === 'Running') memory.inputs.set(written.metadata.uid, written.spec.input ?? null);
      if (action.status.error) {
        const { code, message } = action.status.error;
        log.info({ session: pass.key, turn: written.metadata.name, code, message }, 'turn ended without a result');
        if (NOTEWORTHY.has(code)) {
          effects.notify(session, {
            type: 'Warning',
            reason: code,
            message: `Turn ${written.metadata.name}: ${message}`,
          });
        }
      }
      caches.sawTurn(written);
      return;
    }
    case 'OwnIncarnation':
      return ownIncarnation(pass);
    case 'CreatePod':
      return createPod(pass, action);
    case 'DeletePod': {
      const { name, uid } = action.pod.metadata;
      log.info({ session: pass.key, pod: name, why: action.why }, 'pod deleted');
      await api.delete(pods, { namespace, name }, { uid, signal }).catch((error) => {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      });
      return;
    }
    case 'ConfirmGone':
      return confirmGone(pass, action.podUID);
    case 'ReadLog': {
      const opened = links.open(action.pod, linkSession(pass));
      const log = await readLog(pass, action.pod.metadata.name);
      memory.logRead = { podUID: action.pod.metadata.uid };
      if (log) opened.takeLog(log);
      return;
    }
    case 'OpenLink':
      links.open(action.pod, linkSession(pass)).open(attachability(action.pod));
      return;
    case 'CloseLink':
      links.closeOthers(session.metadata.uid);
      memory.suspension = undefined;
      memory.commitProblem = undefined;
      memory.logFailures = 0;
      memory.inputs.clear();
      return;
    case 'Bind':
      return bindRunner(pass, action.settings);
    case 'StartTurn': {
      const current = links.get(session.status?.podUID) ?? link;
      const { uid, name } = action.turn.metadata;
      const live = memory.inputs.has(uid) ? undefined : await api.get(turns, { namespace, name }, { signal });
      const input = live ? (live.spec.input ?? null) : memory.inputs.get(uid);
      const { index = 0, attempt = 1 } =
        live?.status ??
        caches.turnsNaming(namespace, session.metadata.name).find((turn) => turn.metadata.uid === uid)?.status ??
        {};
      current?.startTurn({ turn: uid, name, index, attempt, input, timeoutMs: action.timeoutMs });
      memory.inputs.delete(uid);
      return;
    }
    case 'CancelTurn':
      link?.cancel(action.turn);
      return;
    case 'NoteFailedStart':
      memory.failedStarts = { count: (memory.failedStarts?.count ?? 0) + 1, at: effects.clock.now() };
      return;
    case 'AbortSuspension':
      abortSuspension(pass, action.message);
      return;
    case 'Commit':
      return commit(pass, action.turn, action.delivery);
    case 'Acknowledge':
      return acknowledgeStray(pass, action.delivery);
    case 'SuspendRunner':
      memory.suspension = undefined;
      link?.suspend();
      return;
    case 'ResumeRunner':
      memory.suspension = undefined;
      link?.resume();
      return;
    case 'VerifySuspension':
      return verifySuspension(pass);
  }
}

function linkSession({ key, world: { session } }: Pass) {
  return { key, uid: session.metadata.uid, incarnation: session.status?.incarnation ?? 0 };
}

/** From the live Session: the cached one has no input. Repeating it finds the turn there. */
async function createFirstTurn({ effects, world: { session }, signal }: Pass): Promise<void> {
  const { api, caches, notify } = effects;
  const namespace = session.metadata.namespace as string;
  const live = await api.get(sessions, { namespace, name: session.metadata.name }, { signal });
  if (live.metadata.uid !== session.metadata.uid || live.status?.phase !== undefined) return;
  const turn = {
    apiVersion: API_GROUP_VERSION,
    kind: 'Turn',
    metadata: { namespace, name: firstTurnName(live.metadata.name), ownerReferences: [ownedBy(live)] },
    spec: {
      session: live.metadata.name,
      input: live.spec.input,
      cancel: false,
      ...(live.spec.requester ? { requester: live.spec.requester } : {}),
    },
  };
  try {
    caches.sawTurn(await api.create(turns, turn, { signal }));
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const ref = { namespace, name: turn.metadata.name };
    const present = await api.get(turns, ref, { signal });
    const owner = present.metadata.ownerReferences?.find(({ kind }) => kind === 'Session')?.uid;
    if (owner === session.metadata.uid) return;
    // That of a deleted session goes by itself; anything else is for a person to move.
    const message = `Turn "${ref.name}", which spec.input would become, exists and is not this session's; delete it.`;
    notify(session, { type: 'Warning', reason: 'InvalidSpec', message });
    throw new Error(message);
  }
}

/** What an ended container printed; undefined when there is nothing to be had. */
async function readLog({ effects: { api }, world, memory, signal }: Pass, name: string): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  try {
    const ref = { namespace: world.session.metadata.namespace as string, name };
    for await (const piece of api.podLog(ref, { signal })) pieces.push(piece);
    return Buffer.concat(pieces);
  } catch (error) {
    if (signal.aborted) throw error;
    // A pod that the kubelet refused has no log and never will; a node that is gone does not answer for it.
    memory.logFailures = (memory.logFailures ?? 0) + 1;
    const never = error instanceof ApiError && error.code < 500;
    if (!never && memory.logFailures < LOG_ATTEMPTS) throw error;
    return undefined;
  }
}

async function createPod(pass: Pass, { settings }: Extract<Action, { do: 'CreatePod' }>): Promise<void> {
  const { effects, world, memory, signal, key } = pass;
  const { api, caches, links, log } = effects;
  const incarnation = world.session.status?.incarnation ?? 0;
  const pod = sessionPod(world.session, incarnation, settings);
  try {
    const created = await api.create(pods, pod, { signal });
    memory.startProblem = undefined;
    log.info({ session: key, pod: created.metadata.name, incarnation }, 'pod created');
    links.open(created, linkSession(pass)).open({ ...attachability(created), fresh: true });
    caches.sawPod(created);
  } catch (error) {
    if (isAlreadyExists(error)) {
      // Made by an earlier leader of the same incarnation, or by this one when the answer was lost.
      caches.sawPod(
        await api.get(pods, { namespace: pod.metadata.namespace as string, name: pod.metadata.name }, { signal }),
      );
      return;
    }
    if (isForbidden(error) || isInvalid(error)) {
      const message = (error as Error).message;
      const quota = isForbidden(error) && /exceeded quota/.test(message);
      memory.startProblem = { reason: quota ? 'QuotaExceeded' : 'PodForbidden', message };
    }
    throw error;
  }
}

/** A pod counts as gone when a live read says so and no turn was committed meanwhile. */
async function confirmGone({ effects: { api, caches }, world, memory, signal }: Pass, podUID: string): Promise<void> {
  const { session } = world;
  const namespace = session.metadata.namespace as string;
  const ran = world.turns.find(({ status }) => status.podUID === podUID)?.status.incarnation;
  const name = podName(session.metadata.uid, ran ?? session.status?.incarnation ?? 0);
  try {
    const pod = await api.get(pods, { namespace, name }, { signal });
    if (pod.metadata.uid === podUID) {
      caches.sawPod(pod);
      throw new TransportError(`the cache does not show pod ${name}, which exists; looking again`);
    }
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  for (const turn of world.turns) {
    if (isTerminal(turn.status.phase) || turn.status.podUID !== podUID) continue;
    const live: StoredTurn = await api.get(turns, { namespace, name: turn.metadata.name }, { signal });
    caches.sawTurn(live);
  }
  memory.confirmedGone = { podUID };
}
