import type { StoredPod } from '../../core/kube/builtin.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../core/kube/errors.ts';
import { pods } from '../../core/kube/resources.ts';
import { ownedBy, sessionOwner, sessions, turns } from '../../core/resources/kinds.ts';
import { API_GROUP_VERSION, firstTurnName } from '../../core/resources/names.ts';
import type { Action } from '../decide/actions.ts';
import { awaitsFirstTurn } from '../decide/policies/turns.ts';
import { attachability } from '../link/links.ts';
import { acknowledgeStray } from './acknowledge.ts';
import { acknowledgeRequest, adoptApproval, commitRequest, consume } from './approval.ts';
import { bindRunner } from './bind.ts';
import { commit } from './commit.ts';
import { commitLog } from './commit-log.ts';
import { confirmGone, readPod } from './confirm-gone.ts';
import type { ReconcileContext } from './context.ts';
import { createPod } from './create-pod.ts';
import { expire } from './expire.ts';
import { adoptTurn, endReplaced } from './former-session.ts';
import { linkSession } from './link-session.ts';
import { ownIncarnation, withPlaceHeld } from './own.ts';
import { giveInput, letRun } from './runnerless.ts';
import { showUsage } from './show-usage.ts';
import { startTurn } from './start-turn.ts';
import { abortSuspension, askForSuspension, undoSuspension, verifySuspension } from './suspension.ts';
import { writingSession } from './too-large.ts';
import { endedLog, isUnreadable } from './unreadable-log.ts';
import { writeTurn } from './write-turn.ts';

/** Ends of turns that are nobody's wish and no agent's doing. */
const NOTEWORTHY: ReadonlySet<string> = new Set([
  'PodLost',
  'OOMKilled',
  'Evicted',
  'StartFailed',
  'TurnTimedOut',
  'ApprovalTimeout',
  'InternalError',
]);

/**
 * Carries out one action. Rejects with a retryable error when it could not; what a person must know becomes a problem in
 * the session's memory instead, which the next decision shows.
 */
export async function perform(action: Action, context: ReconcileContext): Promise<void> {
  const { effects, world, memory, signal } = context;
  const { api, caches, links, log } = effects;
  const { session } = world;
  const namespace = session.metadata.namespace as string;
  const link = links.get(world.link?.podUID);

  switch (action.do) {
    case 'AdoptTurn':
      return adoptTurn(context, action.turn);
    case 'EndReplaced':
      return endReplaced(context, action.turn, action.status);
    case 'CreateFirstTurn':
      return createFirstTurn(context);
    case 'WriteTurn': {
      const written = await writeTurn(context, action.turn, action.status);
      if (action.status.phase === 'Running') memory.inputs.set(written.metadata.uid, written.spec.input ?? null);
      if (action.status.error) {
        const { code, message } = action.status.error;
        log.info({ session: context.key, turn: written.metadata.name, code, message }, 'turn ended without a result');
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
      return ownIncarnation(context);
    case 'CreatePod':
      return withPlaceHeld(context, world.session.status?.podName as string, () =>
        createPod(context, action.settings, action.turn),
      );
    case 'DeletePod': {
      const { name, uid } = action.pod.metadata;
      log.info(
        { session: context.key, pod: name, why: action.why },
        action.force ? 'pod removed without its node' : 'pod deleted',
      );
      const ours = uid === world.pod?.metadata.uid;
      if (ours) memory.deletionPending = { podUID: uid, why: action.why };
      const force = action.force ? { gracePeriodSeconds: 0 } : {};
      await api.delete(pods, { namespace, name }, { uid, signal, ...force }).catch((error) => {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      });
      if (ours) memory.deletionPending = { podUID: uid, why: action.why, accepted: true };
      return;
    }
    case 'ConfirmGone':
      return confirmGone(context, action.podUID);
    case 'ReadPod':
      return readPod(context, action.pod);
    case 'ReadLog': {
      const opened = links.open(action.pod, linkSession(context));
      const log = await readLog(context, action.pod);
      memory.logRead = { podUID: action.pod.metadata.uid };
      if (log) opened.takeLog(log);
      return;
    }
    case 'OpenLink':
      links.open(action.pod, linkSession(context)).open(attachability(action.pod));
      return;
    case 'CloseLink':
      links.closeOthers(session.metadata.uid);
      memory.suspension = undefined;
      memory.commitProblem = undefined;
      memory.inputs.clear();
      return;
    case 'Bind':
      return bindRunner(context, action.settings);
    case 'StartTurn':
      return startTurn(context, action.turn);
    case 'CancelTurn':
      link?.cancel(action.turn, action.why);
      return;
    case 'AbortSuspension':
      abortSuspension(context, action.message);
      return;
    case 'Commit':
      return commit(context, action.turn, action.delivery, action.lost);
    case 'Acknowledge':
      return acknowledgeStray(context, action.delivery);
    case 'CommitLog':
      return commitLog(context, action);
    case 'LetRun':
      return letRun(context, action);
    case 'GiveInput':
      return giveInput(context, action);
    case 'CommitRequest':
      return commitRequest(context, action.turn, action.asking);
    case 'AcknowledgeRequest':
      return acknowledgeRequest(context, action.asking);
    case 'AdoptApproval':
      return adoptApproval(context, action.approval, action.turn);
    case 'Consume':
      return consume(context, action.turn, action.approval, action);
    case 'SuspendRunner':
      askForSuspension(context, action.snapshot);
      return;
    case 'ResumeRunner':
      undoSuspension(context);
      return;
    case 'ShowUsage':
      return showUsage(context, action);
    case 'Expire':
      return expire(context, action.expiry);
    case 'VerifySuspension':
      return verifySuspension(context, action.reason);
  }
}

/**
 * From the live Session: the cached one has no input. Repeating it finds the turn there. A name that is another's is
 * remembered as the problem, and nothing else is to be done before the next decision.
 */
async function createFirstTurn({ effects, world: { session }, memory, signal }: ReconcileContext): Promise<void> {
  const { api, caches } = effects;
  const namespace = session.metadata.namespace as string;
  const live = await api.get(sessions, { namespace, name: session.metadata.name }, { signal });
  memory.firstTurnProblem = undefined;
  if (live.metadata.uid !== session.metadata.uid || !awaitsFirstTurn(live.status)) return;
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
    caches.sawTurn(await writingSession(effects, session, () => api.create(turns, turn, { signal })));
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const ref = { namespace, name: turn.metadata.name };
    const present = await api.get(turns, ref, { signal });
    if (sessionOwner(present.metadata)?.uid === session.metadata.uid) return;
    // That of a deleted session goes by itself; anything else is for a person to move.
    const message = `Turn "${ref.name}", which spec.input would become, exists and is not this session's; delete it.`;
    memory.firstTurnProblem = { reason: 'TurnExists', message };
  }
}

/** What an ended container printed; undefined when there is nothing to be had. */
async function readLog(
  context: ReconcileContext,
  { metadata: { namespace = '', name, uid } }: StoredPod,
): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  try {
    for await (const piece of endedLog(context, { namespace, name })) pieces.push(piece);
    return Buffer.concat(pieces);
  } catch (error) {
    if (context.signal.aborted) throw error;
    if (!isUnreadable(context, uid, error)) throw error;
    return undefined;
  }
}
