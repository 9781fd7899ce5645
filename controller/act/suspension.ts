import type { FrameOf } from '../../core/frames/messages.ts';
import { sessions, turns } from '../../core/resources/kinds.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { StoreFullError } from '../../core/store/store.ts';
import { slimApproval } from '../caches/slim.ts';
import type { SuspensionReason } from '../decide/actions.ts';
import { replacesPod } from '../decide/suspend-reason.ts';
import {
  askingTurn,
  noneUsesSlot,
  type Recheck,
  suspensionVeto,
  waitingTurns,
  wishVeto,
} from '../decide/suspension-veto.ts';
import { isDecided } from '../observed/approvals.ts';
import { learn } from '../observed/memory.ts';
import type { World } from '../observed/world.ts';
import { keptOf } from '../settings/persistence.ts';
import { timeoutMs } from '../settings/timeouts.ts';
import { readApprovals } from './approval.ts';
import { boundedWait } from './bounded-wait.ts';
import type { ReconcileContext } from './context.ts';
import { storeState } from './store-delivery.ts';

/** The runner is to refuse turns, to say when it was last active, and to hand over its state. */
export function askForSuspension({ effects, world, memory }: ReconcileContext, snapshot: boolean): void {
  const link = effects.links.get(world.link?.podUID);
  if (!link || !world.link) return;
  learn(memory, { fact: 'SuspensionAsked', podUID: world.link.podUID, at: effects.clock.now() });
  link.suspend(snapshot ? stateLimit(world) : undefined);
}

/** A pod keeps the `maxState` of its binding. A class that has raised it since should help before the pod is gone. */
function stateLimit({ session, class: sessionClass }: World): { maxStateBytes?: number } {
  if (!sessionClass) return {};
  return { maxStateBytes: keptOf(session.spec, sessionClass).maxStateBytes ?? Number.MAX_SAFE_INTEGER };
}

/** The runner takes turns again. */
export function undoSuspension({ effects, world, memory }: ReconcileContext): void {
  learn(memory, { fact: 'SuspensionUndone' });
  effects.links.get(world.link?.podUID)?.resume();
}

/**
 * The runner has refused turns since it was asked to and has handed over its state: it is stored where it differs from the
 * committed one. Then a second read, live and consistent: a turn that came in between, activity or a change of mind undoes
 * it.
 */
export async function verifySuspension(context: ReconcileContext, reason: SuspensionReason): Promise<void> {
  const { effects, world, memory, key } = context;
  const link = effects.links.get(world.link?.podUID);
  if (!link || !world.link) return;
  const { snapshot, podUID } = world.link;
  const state = snapshot ? await durable(context, reason, snapshot, link.incarnation) : 'Unchanged';
  if (state === 'Aborted') return;
  const veto = suspensionVeto(world, reason, memory.incarnation.suspension?.askedAt ?? 0, await recheck(context));
  if (veto) {
    effects.log.info({ session: key, news: veto }, 'suspension undone');
    undoSuspension(context);
    return;
  }
  if (snapshot) link.acknowledge(snapshot.seq);
  learn(memory, { fact: 'SuspensionVerified', podUID, verified: state });
}

/**
 * Stores the state and resolves once it can be read. Rejects with a retryable error while there is time left. Aborts the
 * suspension when the time or the store is used up, or when the session is needed again.
 */
async function durable(
  context: ReconcileContext,
  reason: SuspensionReason,
  snapshot: FrameOf<'state'>,
  incarnation: number,
): Promise<StateRef | 'Unchanged' | 'Aborted'> {
  const { effects, world, memory, signal } = context;
  const { session } = world;
  const { namespace, uid } = session.metadata;
  const committed = session.status?.state;
  const since = memory.incarnation.suspension?.askedAt ?? effects.clock.now();
  const deadline = since + timeoutMs('persist', session.spec, world.class);
  const wanted = () => !session.spec.suspend && isWanted(context, reason);
  const read = (state: StateRef, waiting: AbortSignal) =>
    state.ref === undefined
      ? undefined
      : effects.store.get(
          {
            namespace,
            sessionUID: uid,
            incarnation: state.incarnation,
            seq: state.seq,
            kind: 'State',
          },
          waiting,
        );
  try {
    return await boundedWait({ effects, deadline, signal, unless: wanted }, async (waiting) => {
      const { digest, keyId } = snapshot.message;
      if (committed?.digest === digest && committed.keyId === keyId) {
        const kept = await Promise.resolve(read(committed, waiting)).then(
          () => true,
          () => false,
        );
        waiting.throwIfAborted();
        if (kept) return 'Unchanged';
      }
      const state = await storeState({ ...context, signal: waiting }, snapshot, incarnation);
      await read(state, waiting);
      return state;
    });
  } catch (error) {
    if (signal.aborted) throw error;
    if (wanted()) {
      undoSuspension(context);
      return 'Aborted';
    }
    const message = error instanceof Error ? error.message : String(error);
    if (!(error instanceof StoreFullError) && effects.clock.now() < deadline) throw error;
    abortSuspension(context, message);
    return 'Aborted';
  }
}

/** Reports whether, by the caches, a turn or a decision waits for the session. */
function isWanted({ effects: { caches }, world }: ReconcileContext, reason: SuspensionReason): boolean {
  if (replacesPod(reason)) return false;
  const { name, namespace } = world.session.metadata;
  const named = caches.turnsNaming(namespace, name);
  const waiting = askingTurn(world, named);
  if (!waiting) {
    const others = waitingTurns(world.session, named);
    return others.length > 0 && !(reason === 'Preempted' && noneUsesSlot(others));
  }
  return isDecided({ approvals: caches.approvalsNaming(namespace, waiting.metadata.name) }, waiting);
}

/** Live reads for a suspension. */
async function recheck({ effects, world, signal }: ReconcileContext): Promise<Recheck> {
  const { api, caches, clock } = effects;
  const { namespace, name } = world.session.metadata;
  const session = await api.get(sessions, { namespace, name }, { signal });
  const { items } = await api.list(turns, { namespace, fieldSelector: `spec.session=${name}`, signal });
  caches.saw(turns, ...items);
  const present = items.filter((turn) => isTerminal(turn.status?.phase) || !caches.isLeftOut(turn.metadata));
  const asking = wishVeto(world, session) ? undefined : askingTurn(world, present);
  if (!asking) return { now: clock.now(), session, turns: present, approvals: [] };
  const found = await readApprovals({ effects, signal }, asking);
  return { now: clock.now(), session, turns: present, approvals: found.map(slimApproval) };
}

/** The state cannot be read or stored: the runner takes turns again, a condition says so, and it is tried again later. */
export function abortSuspension(context: ReconcileContext, message: string): void {
  const { effects, memory, world, key } = context;
  undoSuspension(context);
  learn(memory, {
    fact: 'SuspensionFailed',
    problem: { reason: 'StateNotStored', message },
    generation: world.session.metadata.generation,
    at: effects.clock.now(),
  });
  effects.log.warn({ session: key, why: message }, 'suspension aborted');
}
