import { defined } from '../../core/defined.ts';
import type { StoredPod } from '../../core/kube/builtin.ts';
import { ApiError, isConflict, isTooLarge } from '../../core/kube/errors.ts';
import { sessions } from '../../core/resources/kinds.ts';
import { LABEL_POOL, podName } from '../../core/resources/names.ts';
import { reasons } from '../../core/resources/reasons.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { Ledger } from '../capacity/ledger.ts';
import { learn } from '../observed/memory.ts';
import { ownTurns } from '../observed/own-turns.ts';
import type { World } from '../observed/world.ts';
import { environmentOf } from '../settings/environment.ts';
import { settingsDigest } from '../settings/session-digest.ts';
import { withCondition } from '../status/conditions.ts';
import { withPhaseSince, withSessionReason } from '../status/reason.ts';
import { statePersisted } from '../status/state-persisted.ts';
import type { ReconcileContext } from './context.ts';
import { writingSession } from './too-large.ts';

/**
 * Takes a slot, then writes the next incarnation and its pod's name at the version decided upon. Whoever wins this write
 * owns the incarnation; the loser's slot is released.
 */
export async function ownIncarnation(
  { effects, world, key, signal, memory }: ReconcileContext,
  decided: StoredPod | undefined,
): Promise<void> {
  const { api, statuses, ledger, log } = effects;
  const { session } = world;
  const { namespace, name } = session.metadata;
  // Sessions that come at once decide upon the same pod, and have created their turns since.
  const isSpare = ({ metadata }: StoredPod) => ledger.isSpare(namespace, metadata.name);
  const claim = decided && (world.warm?.pods.find(isSpare) ?? decided);
  const incarnation = (session.status?.incarnation ?? 0) + 1;
  const pod = claim?.metadata.name ?? podName(session.metadata.uid, incarnation);
  if (!ledger.reserve(world.applicant, pod)) {
    ledger.wait(world.applicant);
    return;
  }
  prefetchState(effects, world, signal);
  try {
    const write = () => statuses.write(sessions, session.metadata, owned(world, incarnation, pod, claim), signal);
    await writingSession(effects, session, write);
    learn(memory, { fact: 'IncarnationOwned', since: world.monotonic });
    log.info({ session: key, uid: session.metadata.uid, incarnation }, 'session admitted');
    if (!claim && world.warm?.fits) effects.pools.count('missed', namespace, world.warm.pool);
  } catch (error) {
    if (isRefusal(error)) ledger.refused(namespace, pod);
    // The slot stays taken until it is known whether this write, or an earlier one of ours, took effect.
    failed(ledger, namespace, pod, error);
    if (isConflict(error)) {
      // No write of this version can take effect any more: a live read shows which one has.
      await api.get(sessions, { namespace, name }, { signal });
      // The session keeps its position in the queue: no other gets the slot that is released.
      ledger.wait(world.applicant);
      ledger.confirm(namespace, pod);
    }
    throw error;
  }
  ledger.confirm(namespace, pod);
}

/** Begins to read the state that the runner will be given, while the session gets its pod. */
function prefetchState({ statePrefetch, store }: ReconcileContext['effects'], { session }: World, signal: AbortSignal) {
  const { state } = session.status ?? {};
  if (state?.ref === undefined) return;
  const { namespace, uid: sessionUID } = session.metadata;
  const { incarnation, seq, bytes } = state;
  const key = { namespace, sessionUID, incarnation, seq, kind: 'State' as const };
  statePrefetch.begin(sessionUID, state, () => store.get(key, signal, bytes));
}

/**
 * Creates the pod while its slot is reserved. The session may be gone by the time the pod exists: both count. Where it is
 * gone already, another session may have the slot.
 */
export async function withSlotHeld(
  { effects, world, key }: ReconcileContext,
  pod: string,
  make: () => Promise<void>,
): Promise<void> {
  const { ledger } = effects;
  const { namespace } = world.session.metadata;
  if (!ledger.hasSlot(namespace, pod)) return;
  ledger.hold({ key, namespace, class: world.session.spec.class }, pod);
  try {
    await make();
  } catch (error) {
    failed(ledger, namespace, pod, error);
    throw error;
  }
  ledger.confirm(namespace, pod);
}

/** Keeps the slot as long as a request for the pod may take effect. A refusal does not, if nothing is under way from an earlier one. */
export function failed(ledger: Ledger, namespace: string, pod: string, error: unknown): void {
  if (isRefusal(error) && !isConflict(error) && !ledger.isUnconfirmed(namespace, pod)) ledger.confirm(namespace, pod);
  else ledger.confirmLater(namespace, pod);
}

/** The API server has said no: the request has had no effect and will have none. */
export function isRefusal(error: unknown): boolean {
  return isTooLarge(error) || (error instanceof ApiError && error.code < 500 && error.code !== 408);
}

/** The status has all that later reconciles would say beside it, so that they have nothing to write until the runner is bound. */
function owned(world: World, incarnation: number, pod: string, claim: StoredPod | undefined): SessionStatus {
  const { session, class: sessionClass, agentFiles, memory, now } = world;
  const { podUID: _p, queue: _q, currentTurn: _c, agentFiles: _f, environment: _e, ...rest } = session.status ?? {};
  const { restartRequest } = session.spec;
  const files = [...(agentFiles ?? [])].map(([configMap, digest]) => ({ configMap, digest }));
  const found = environmentOf(world, sessionClass?.spec.runner ?? 'Embedded');
  const generation = session.metadata.generation;
  const admitted = {
    status: 'True',
    reason: 'Admitted',
    message: `Incarnation ${incarnation} holds a running slot.`,
  } as const;
  const starting = {
    status: 'False',
    reason: 'Starting',
    message: claim
      ? `Pod ${pod} is taken from pool "${claim.metadata.labels?.[LABEL_POOL]}"${world.warm?.starting.has(pod) ? ' while it starts' : ''}, and its runner is awaited.`
      : `Pod ${pod} is created and its runner is awaited.${whyCold(world)}`,
  } as const;
  let conditions = withCondition(rest.conditions, 'Admitted', admitted, now, generation);
  conditions = withCondition(conditions, 'Ready', starting, now, generation);
  const plain = { ...starting, message: reasons.Starting };
  conditions = withCondition(conditions, 'Suspended', plain, now, generation);
  if (session.spec.turns === 'One') conditions = withCondition(conditions, 'Finished', plain, now, generation);
  const next: SessionStatus = {
    ...rest,
    turns: { total: 0, succeeded: 0, failed: 0, ...rest.turns },
    observedGeneration: generation ?? 0,
    phase: 'Starting',
    incarnation,
    podName: pod,
    ...(claim ? { podUID: claim.metadata.uid } : {}),
    conditions,
    ...(files.length > 0 ? { agentFiles: files } : {}),
    ...(found && 'taken' in found ? { environment: found.taken } : {}),
    ...(sessionClass?.metadata.generation ? { classGeneration: sessionClass.metadata.generation } : {}),
    settingsDigest: settingsDigest(session.spec),
    ...defined({ restartRequest }),
  };
  const subject = {
    world: { ...world, memory: { ...memory, incarnation: {} } },
    turns: ownTurns(session, world.turns),
  };
  next.conditions = withCondition(conditions, 'StatePersisted', statePersisted(subject, next), now, generation);
  return withPhaseSince(withSessionReason(next), session.status, now);
}

/** A sentence for sessions that start cold beside a pool of their class, with a space before it. */
function whyCold({ warm, session }: World): string {
  if (!warm) return '';
  if (!warm.fits)
    return ` The pods of pool "${warm.pool}" do not fit: the session has an image, resources, a volume or Secrets of its own.`;
  if (session.status?.startFailures) return '';
  return ` No pod of pool "${warm.pool}" was ready.`;
}
