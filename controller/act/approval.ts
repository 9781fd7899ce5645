import { defined } from '../../core/defined.ts';
import { ifThere, isConflict, isForbidden, isNotFound, isTooLarge } from '../../core/kube/errors.ts';
import { decisionCounts, selfApprovalText } from '../../core/resources/decided.ts';
import { approvals, ownedByTurn, type StoredApproval, turns } from '../../core/resources/kinds.ts';
import { clip, MAX_JSON_DEPTH, MAX_PROMPT_BYTES } from '../../core/resources/limits.ts';
import type { TurnApproval, TurnStatus } from '../../core/resources/turn.ts';
import { slimApproval } from '../caches/slim.ts';
import { counts } from '../observed/approvals.ts';
import type { Asking } from '../observed/link-view.ts';
import { inClusterTime } from '../observed/runner-time.ts';
import type { CachedApproval, CachedTurn, Problem } from '../observed/world.ts';
import { awaiting, resumed } from '../status/approval-status.ts';
import { ended } from '../status/turn-status.ts';
import { letGo, remember, writeAtVersion } from './commit.ts';
import type { ReconcileContext } from './context.ts';
import { incarnationOf, storeDelivery } from './store-delivery.ts';

/** Reads the Approvals that name the turn live, also into the caches: those may not have seen a decision yet. */
export async function readApprovals(
  { effects: { api, caches }, signal }: Pick<ReconcileContext, 'effects' | 'signal'>,
  { metadata: { namespace, name } }: Pick<CachedTurn, 'metadata'>,
): Promise<StoredApproval[]> {
  const { items } = await api.list(approvals, { namespace, fieldSelector: `spec.turn=${name}`, signal });
  caches.saw(approvals, ...items);
  return items;
}

/**
 * Makes a request durable as a result is: the state into the store, then one status write, and only then the runner may
 * forget. A state that cannot be stored ends the turn, as it could not go on elsewhere.
 */
export async function commitRequest(context: ReconcileContext, turn: CachedTurn, asking: Asking): Promise<void> {
  const { effects, world, signal } = context;
  const { message, seq } = asking.request;
  const stored = await storeDelivery(context, turn, { ...asking, result: asking.request });
  const now = effects.clock.now();
  const request: TurnApproval = {
    requestId: message.id,
    id: message.id,
    prompt: clip(message.prompt, MAX_PROMPT_BYTES),
    ...defined({ payload: message.payload }),
    since: new Date(now).toISOString(),
    process: message.process,
    incarnation: incarnationOf(turn),
    seq,
    ranMs: message.ranMs,
  };
  const fields: Partial<TurnStatus> = {
    startedAt: turn.status.startedAt ?? inClusterTime(turn, { ...message, finishedAt: message.at }, now).startedAt,
    ...(stored.state ? { state: stored.state } : {}),
    ...(stored.log ? { log: stored.log } : {}),
    ...defined({ redactions: message.redactions }),
  };
  const [problem = withoutRequester(turn)] = stored.problems;
  const status = problem
    ? ended(turn, { phase: 'Failed', reason: problem.reason, message: problem.message, fields }, now)
    : awaiting(turn, request, fields, now);
  const written = await writeAtVersion(context, turn, status);
  letGo(context, { ...asking, result: asking.request }, written);
  if (!problem) {
    const text = `Turn ${turn.metadata.name} asks (request ${message.id}): ${message.prompt}`;
    effects.notify(world.session, { type: 'Normal', reason: 'AwaitingApproval', message: clip(text, 1024) });
  }
  if (!signal.aborted) remember(context, turn, written);
}

/** Problem of a question that nobody can be told apart from: its class refuses decisions of whoever asked for the turn. */
function withoutRequester({ metadata, spec, status }: CachedTurn): Problem | undefined {
  if (!status.granted?.notBy || spec.requester !== undefined) return undefined;
  const message = `The class has selfApproval: Refused, but nobody knows who asked for turn ${metadata.name}: create turns that ask with spec.requester.`;
  return { reason: 'RequesterUnknown', message };
}

/** Reports whether the turn's status has the request, or a later one. */
function isCommitted(asking: Asking, incarnation: number | undefined, known: TurnApproval | undefined): boolean {
  return known?.incarnation === incarnation && (known?.seq ?? 0) >= asking.request.seq;
}

/** Acknowledges a request of no turn that waits. The cache may be behind, so a live read decides whether that is so. */
export async function acknowledgeRequest(context: ReconcileContext, asking: Asking): Promise<void> {
  const { effects, world, signal } = context;
  const { api, caches, links } = effects;
  const { seq, message } = asking.request;
  const { metadata, status } = world.session;
  const fieldSelector = `spec.session=${metadata.name}`;
  const { items } = await api.list(turns, { namespace: metadata.namespace, fieldSelector, signal });
  caches.saw(turns, ...items);
  const turn = items.find(({ metadata: { uid } }) => uid === message.turn);
  if (isCommitted(asking, status?.incarnation, turn?.status?.approval)) {
    links.get(world.link?.podUID)?.acknowledge(seq);
    return;
  }
  const phase = turn?.status?.phase;
  const asks = (phase === 'Running' || phase === 'AwaitingApproval') && turn?.status?.attempt === message.attempt;
  if (!asks) letGo(context, { ...asking, result: asking.request }, turn);
}

/**
 * Writes the decision and the pod that gets it, at the version of the decision to do so. This write consumes the decision. The Approval
 * is read live before it, also for its response, which the cache does not have.
 */
export async function consume(
  context: ReconcileContext,
  turn: CachedTurn,
  approval: CachedApproval | undefined,
  facts: { incarnation: number; podUID: string },
): Promise<void> {
  const { effects, key, signal } = context;
  const { statuses, clock, log } = effects;
  const decided = turn.status.approval?.decided ?? (approval && (await decisionOf(context, turn, approval)));
  if (!decided) return;
  const status = resumed(turn, decided, facts, clock.now());
  await statuses.write(turns, turn.metadata, status, signal);
  log.info(
    { session: key, turn: turn.metadata.name, request: turn.status.approval?.id, decision: decided.decision },
    'decision taken',
  );
}

async function decisionOf(
  { effects: { api }, signal }: ReconcileContext,
  turn: CachedTurn,
  { metadata }: CachedApproval,
): Promise<TurnApproval['decided']> {
  const ref = { namespace: metadata.namespace, name: metadata.name };
  const live = await ifThere(api.get(approvals, ref, { signal }));
  if (live?.metadata.uid !== metadata.uid || !counts(slimApproval(live), turn)) return undefined;
  const { decision, response, note, requester } = live.spec;
  return {
    decision,
    ...defined({ response, note, by: requester }),
    approval: live.metadata.name,
    at: live.metadata.creationTimestamp,
  };
}

/**
 * Makes the turn the owner of the approval, so that it is deleted with the turn. An event reports once an approval that
 * counts for nothing.
 */
export async function adoptApproval(
  context: ReconcileContext,
  approval: CachedApproval,
  turn: CachedTurn,
): Promise<void> {
  const { effects, world, signal } = context;
  const { name, uid, resourceVersion, namespace } = approval.metadata;
  const patch = { metadata: { uid, resourceVersion, ownerReferences: [ownedByTurn(turn)] } };
  const ref = { namespace, name };
  try {
    await effects.api.patch(approvals, ref, patch, { type: 'merge', signal });
  } catch (error) {
    // Changed or gone: its event comes.
    if (isNotFound(error) || isConflict(error)) return;
    if (!isForbidden(error) && !isTooLarge(error)) throw error;
    // OwnerReferencesPermissionEnforcement asks for the right to delete. An approval without an owner counts all the same.
    effects.log.warn({ approval: name, namespace, err: error }, 'approval could not be adopted by its turn');
    return;
  }
  if (counts(approval, turn)) return;
  const waits = turn.status.phase === 'AwaitingApproval' ? turn.status.approval?.id : undefined;
  const isConsumed = turn.status.approval?.decided?.approval === name;
  if (isConsumed) return;
  const deep = approval.responseTooDeep;
  const unfit = deep ? `its response is nested deeper than ${MAX_JSON_DEPTH} levels, at ${deep}` : undefined;
  const { requester } = approval.spec;
  const own = decisionCounts(requester, turn.status) ? undefined : selfApprovalText(requester, turn.metadata.name);
  const why =
    approval.spec.requestId === turn.status.approval?.id
      ? (unfit ?? own ?? 'it was changed, or its response is too large')
      : `the turn ${waits ? `waits for a decision on request "${waits}"` : 'waits for no decision'}`;
  const message = `Approval ${name} for request "${approval.spec.requestId}" of turn ${turn.metadata.name} counts for nothing: ${why}.`;
  effects.notify(world.session, { type: 'Warning', reason: 'ApprovalIgnored', message });
}
