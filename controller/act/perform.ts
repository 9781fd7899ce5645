import { isAlreadyExists, isConflict, isNotFound, isOverQuota } from '../../core/kube/errors.ts';
import { pods } from '../../core/kube/resources.ts';
import { ownedBy, sessionOwner, sessions, turns } from '../../core/resources/kinds.ts';
import { API_GROUP_VERSION, firstTurnName } from '../../core/resources/names.ts';
import type { Action } from '../decide/actions.ts';
import { awaitsFirstTurn } from '../decide/policies/turns.ts';
import { attachability } from '../link/links.ts';
import { learn } from '../observed/memory.ts';
import type { CachedSession } from '../observed/world.ts';
import { acknowledgeRequest, adoptApproval, commitRequest, consume, readApprovals } from './approval.ts';
import { bindRunner } from './bind.ts';
import { claimPod } from './claim-pod.ts';
import { acknowledgeUnmatched, commit } from './commit.ts';
import { commitLog } from './commit-log.ts';
import { confirmGone, readPod } from './confirm-gone.ts';
import type { ReconcileContext } from './context.ts';
import { createPod } from './create-pod.ts';
import { expire } from './expire.ts';
import { adoptTurn, endReplaced } from './former-session.ts';
import { linkSession } from './link-session.ts';
import { makeRoom } from './make-room.ts';
import { readFiles } from './read-files.ts';
import { takeLog } from './read-log.ts';
import { giveInput, letRun } from './runnerless.ts';
import { withSlotHeld } from './slots.ts';
import { startTurn } from './start-turn.ts';
import { abortSuspension, askForSuspension, undoSuspension, verifySuspension } from './suspension.ts';
import { writingSession } from './too-large.ts';
import { showUsage, writeTurn } from './write-turn.ts';

/** Ends of turns that neither a person asked for nor the agent caused. */
const NOTEWORTHY: ReadonlySet<string> = new Set([
  'PodLost',
  'OOMKilled',
  'Evicted',
  'DiskFull',
  'StartFailed',
  'TurnTimedOut',
  'ApprovalTimeout',
  'InternalError',
]);

type Of<K extends Action['do']> = Extract<Action, { do: K }>;

/** Effects by their action. They add what they find out to the memory, as facts. */
type Handlers = { [K in Action['do']]: (context: ReconcileContext, action: Of<K>) => Promise<void> | void };

const handlers: Handlers = {
  AdoptTurn: async (context, { turn }) => adoptTurn(context, turn),
  CreateFirstTurn: async (context) => createFirstTurn(context),
  WriteTurn: writeTurnDecided,
  ShowWait: async (context, { turn, status }) => void (await writeTurn(context, turn, status)),
  EndReplaced: async (context, { turn, status }) => endReplaced(context, turn, status),
  ClaimPod: async (context, action) => claimPod(context, action),
  CreatePod: async (context, { settings, turn }) =>
    withSlotHeld(context, context.world.session.status?.podName as string, () => createPod(context, settings, turn)),
  LetRun: async (context, action) => letRun(context, action),
  GiveInput: async (context, action) => giveInput(context, action),
  CommitLog: async (context, action) => commitLog(context, action),
  DeletePod: deletePod,
  ConfirmGone: async (context, { podUID }) => confirmGone(context, podUID),
  ReadPod: async (context, { pod }) => readPod(context, pod),
  ReadApprovals: async (context, { turn, request }) => {
    await readApprovals(context, turn);
    learn(context.memory, { fact: 'ApprovalsRead', request });
  },
  MakeRoom: makeRoom,
  ReadFiles: async (context, { configMaps }) => readFiles(context, configMaps),
  ReadLog: async (context, action) => takeLog(context, action),
  OpenLink: (context, { pod }) => context.effects.links.open(pod, linkSession(context)).open(attachability(pod)),
  CloseLink: closeLink,
  Bind: async (context, { settings }) => bindRunner(context, settings),
  StartTurn: async (context, { turn }) => startTurn(context, turn),
  CancelTurn: ({ effects, world }, { turn, why }) => effects.links.get(world.link?.podUID)?.cancel(turn, why),
  Commit: async (context, { turn, delivery, lost }) => commit(context, turn, delivery, lost),
  CommitRequest: async (context, { turn, asking }) => commitRequest(context, turn, asking),
  AcknowledgeRequest: async (context, { asking }) => acknowledgeRequest(context, asking),
  AdoptApproval: async (context, { approval, turn }) => adoptApproval(context, approval, turn),
  Consume: async (context, action) => consume(context, action.turn, action.approval, action),
  Acknowledge: async (context, { delivery }) => acknowledgeUnmatched(context, delivery),
  SuspendRunner: (context, { snapshot }) => askForSuspension(context, snapshot),
  ResumeRunner: undoSuspension,
  VerifySuspension: async (context, { reason }) => verifySuspension(context, reason),
  AbortSuspension: (context, { message }) => abortSuspension(context, message),
  ShowUsage: async (context, action) => showUsage(context, action),
  Expire: async (context, { expiry }) => expire(context, expiry),
};

/**
 * Carries out one action. Rejects with a retryable error when it could not; a problem that people must know goes into the
 * session's memory, from where the next decision shows it.
 */
export function perform(action: Action, context: ReconcileContext): Promise<void> | void {
  const handler = handlers[action.do] as (context: ReconcileContext, action: Action) => Promise<void> | void;
  return handler(context, action);
}

async function writeTurnDecided(context: ReconcileContext, { turn, status }: Of<'WriteTurn'>): Promise<void> {
  const { effects, world, memory, key } = context;
  const written = await writeTurn(context, turn, status);
  const { uid, name } = written.metadata;
  if (status.phase === 'Running') learn(memory, { fact: 'InputKnown', turn: uid, input: written.spec.input ?? null });
  if (status.error) {
    const { code, message } = status.error;
    effects.log.info({ session: key, turn: name, code, message }, 'turn ended without a result');
    if (NOTEWORTHY.has(code)) {
      effects.notify(world.session, { type: 'Warning', reason: code, message: `Turn ${name}: ${message}` });
    }
  }
}

async function deletePod(context: ReconcileContext, action: Of<'DeletePod'>): Promise<void> {
  const { pod, why, problem, force: isForced } = action;
  const { effects, world, memory, key, signal } = context;
  const { api, log } = effects;
  const { name, uid } = pod.metadata;
  const namespace = world.session.metadata.namespace;
  log.info({ session: key, pod: name, why }, isForced ? 'pod removed without its node' : 'pod deleted');
  const ours = uid === world.pod?.metadata.uid;
  const asked = { fact: 'DeletionAsked' as const, podUID: uid, why, ...(problem ? { problem } : {}) };
  if (ours) learn(memory, asked);
  const force = isForced ? { gracePeriodSeconds: 0 } : {};
  await api.delete(pods, { namespace, name }, { uid, signal, ...force }).catch((error) => {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  });
  if (ours) learn(memory, { ...asked, accepted: true });
}

function closeLink({ effects, world, memory }: ReconcileContext): void {
  effects.links.closeOthers(world.session.metadata.uid);
  learn(memory, { fact: 'LinkClosed' });
}

/**
 * Creates the turn in `spec.input`. A repetition finds the turn. A name that another turn has, or a quota that is used up, is
 * remembered as the problem, and the rest of the decision counts no more.
 */
async function createFirstTurn(context: ReconcileContext): Promise<void> {
  const { effects, world, memory, signal } = context;
  const { api, caches } = effects;
  const { session } = world;
  const { namespace, name, uid } = session.metadata;
  // A turn that was created and deleted since is not created again: the session's status shows that it was. The cache of a leader
  // that has settled has what an earlier one wrote, and this one writes none before it has tried or seen a turn.
  const { body } = session.spec.input ?? {};
  const isFirst = !memory.firstTurnTried && !memory.turnCreatedAt;
  const cached = caches.session(namespace, name);
  const isNew = cached?.metadata.uid === uid && cached.status === undefined && caches.closed(namespace) === undefined;
  const isKnown = world.leaderIsReady && isFirst && isNew && body !== undefined;
  const live = isKnown ? withInput(session, body) : await api.get(sessions, { namespace, name }, { signal });
  learn(memory, { fact: 'FirstTurnTried' });
  if (live.metadata.uid !== uid || !awaitsFirstTurn(live.status)) return;
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
    await writingSession(effects, session, () => api.create(turns, turn, { signal }));
  } catch (error) {
    const isOver = isOverQuota(error);
    if (!isOver && !isAlreadyExists(error)) throw error;
    const ref = { namespace, name: turn.metadata.name };
    const present = await api.get(turns, ref, { signal }).catch((absent) => {
      if (!isOver || !isNotFound(absent)) throw absent;
    });
    // A quota also refuses the repetition of a creation that it let pass.
    if (present && sessionOwner(present.metadata)?.uid === session.metadata.uid) return;
    if (!present) {
      const problem = { reason: 'TurnQuotaExceeded', message: (error as Error).message } as const;
      learn(memory, { fact: 'FirstTurnTried', problem });
      return;
    }
    // The garbage collector deletes the turn of a deleted session; any other is for a person to delete.
    const message = `Turn "${ref.name}", which spec.input would become, exists and is not this session's; delete it.`;
    learn(memory, { fact: 'FirstTurnTried', problem: { reason: 'TurnExists', message } });
  }
}

const withInput = ({ spec, ...session }: CachedSession, input: unknown) => ({ ...session, spec: { ...spec, input } });
